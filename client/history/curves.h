#ifndef HOOKE_CLIENT_HISTORY_CURVES_H_
#define HOOKE_CLIENT_HISTORY_CURVES_H_

// The curves that a picture of histories draws. Pure.

#include <string>
#include <utility>
#include <vector>

#include "proto/coordinator.pb.h"

namespace hooke {

struct PlottedJob {
  std::string job_id;
  std::vector<v1::HistoryPoint> points;
};

enum class PlotAxis { kSteps, kTime };

// One curve. All its values are finite, and those of x never fall.
struct Curve {
  std::string label;    // Empty: the legend has no entry of its own for it.
  size_t color = 0;     // Curves of the same color belong together.
  bool center = false;  // The curve is the center's. If false, it is a group's.
  std::vector<std::pair<double, double>> points;
};

// Return the curves of the losses and of the center's accuracies (from 0 to 1). Of one job each group has a color and a
// label; of several, each job. A value that is no number leaves its point out. Time is in seconds since the job's first
// point. Over steps, a group's loss gets a new curve wherever the group went back to an earlier step.
std::vector<Curve> LossCurves(const std::vector<PlottedJob>& jobs, PlotAxis axis);
std::vector<Curve> AccuracyCurves(const std::vector<PlottedJob>& jobs, PlotAxis axis);

}  // namespace hooke

#endif  // HOOKE_CLIENT_HISTORY_CURVES_H_
