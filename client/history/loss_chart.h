#ifndef HOOKE_CLIENT_HISTORY_LOSS_CHART_H_
#define HOOKE_CLIENT_HISTORY_LOSS_CHART_H_

// The loss of a job as a small chart of braille characters, for a terminal.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/coordinator.pb.h"

namespace hooke {

// Collects what a watcher hears of a job's losses, in bounded space. Not thread-safe.
class LossChart {
 public:
  LossChart() = default;
  // Begins with the groups' points of a history.
  explicit LossChart(const std::vector<v1::HistoryPoint>& points);
  void Add(const v1::JobStatus& job);

  // Returns the lines of a chart that is `width` columns wide and has `height` lines: the losses of all groups over
  // steps, a dot for the mean of each column. Empty if fewer than kStepsMin steps are known or there is no room.
  std::vector<std::string> Lines(int width, int height) const;

 private:
  static constexpr size_t kStepsMin = 5;
  static constexpr size_t kStepsMax = 4096;

  void Add(uint64_t step, double loss);

  // For each step, the sum of the groups' losses and how many groups have reported one.
  std::map<uint64_t, std::pair<double, uint32_t>> losses_;
  // The last step that each group has reported. The key is the group's index.
  std::map<uint32_t, uint64_t> last_steps_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_HISTORY_LOSS_CHART_H_
