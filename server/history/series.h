#ifndef HOOKE_SERVER_HISTORY_SERIES_H_
#define HOOKE_SERVER_HISTORY_SERIES_H_

// The history of one group, or of the center: points in order of time, in bounded space. Plain values: no clock, no
// store. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace hooke {

// The state of a group's training, or of the center, at one time. The message of this name in proto/coordinator.proto
// explains the values.
struct HistoryPoint {
  int64_t unix_ms = 0;
  uint64_t step = 0;
  double epoch = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();
  double samples_per_s = 0;
  std::optional<double> exchange_ms;
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> center_distance;
  std::optional<double> staleness;
  // The time that the group has spent since its last start, in milliseconds, by what it did. All 0: not known.
  uint64_t computing_ms = 0;
  uint64_t collectives_ms = 0;
  uint64_t exchanging_ms = 0;
};

// Returns the seconds of a report as whole milliseconds: 0 if they are negative or no number, at most 2^35 - 1, which
// is 397 days. So they take at most five bytes of a record.
uint64_t StoredMilliseconds(double seconds);

// Returns at most `points_max` (at least 2) of the points, which are in order of time. The first point stays, and so do
// the newest ones, up to a third of `points_max`. The others are about equally far from one another in time.
std::vector<HistoryPoint> Thinned(std::vector<HistoryPoint> points, size_t points_max);

// Returns those of the points, which are in order of time, that are newer than `since_unix_ms`.
absl::Span<const HistoryPoint> PointsAfter(absl::Span<const HistoryPoint> points, int64_t since_unix_ms);

struct SeriesOptions {
  size_t points_max = 512;  // Bound of `older` and `newer` together; at least 8.
  // A point that comes sooner than this after the one before the last replaces the last one.
  int64_t gap_ms = 500;
};

// `older` changes rarely and is long, `newer` changes with each point and is short. So a store that keeps them apart
// writes little.
class Series {
 public:
  explicit Series(const SeriesOptions& options) : options_(options) {}
  // Goes on with stored points. They may come from a version with another bound, and are thinned to this one.
  Series(const SeriesOptions& options, std::vector<HistoryPoint> older, std::vector<HistoryPoint> newer);

  // Changes the bound. Points beyond it go when the series ages next.
  void SetPointsMax(size_t points_max) { options_.points_max = points_max; }

  struct Change {
    bool older = false;
    bool newer = false;
  };
  // Adds the newest point, and says what has changed. If the clock went back, the point gets the time of the last one.
  // A point with the step of the last one only corrects its loss.
  Change Add(HistoryPoint point);

  const std::vector<HistoryPoint>& older() const { return older_; }
  const std::vector<HistoryPoint>& newer() const { return newer_; }
  // Returns all points, in order of time.
  std::vector<HistoryPoint> points() const;

 private:
  size_t newer_max() const { return options_.points_max / 4; }
  // Moves all newer points to the older ones, and thins these.
  void Age();

  SeriesOptions options_;
  std::vector<HistoryPoint> older_;
  std::vector<HistoryPoint> newer_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_HISTORY_SERIES_H_
