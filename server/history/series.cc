#include "server/history/series.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hooke {
namespace {

bool SameLoss(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

uint64_t StoredMilliseconds(double seconds) {
  constexpr double kMost = static_cast<double>((uint64_t{1} << 35) - 1);
  const double milliseconds = std::round(1000 * seconds);
  return milliseconds > 0 ? static_cast<uint64_t>(std::min(milliseconds, kMost)) : 0;
}

absl::Span<const HistoryPoint> PointsAfter(absl::Span<const HistoryPoint> points, int64_t since_unix_ms) {
  const auto first = std::partition_point(points.begin(), points.end(),
                                          [&](const HistoryPoint& p) { return p.unix_ms <= since_unix_ms; });
  return points.subspan(static_cast<size_t>(first - points.begin()));
}

std::vector<HistoryPoint> Thinned(std::vector<HistoryPoint> points, size_t points_max) {
  const size_t newest = points_max / 3;
  while (points.size() > points_max) {
    // Removes the point whose two neighbors are closest to each other. The first and the newest points are not removed.
    const size_t end = points.size() - std::max<size_t>(newest, 1);
    size_t best = 1;
    for (size_t i = 2; i < end; ++i) {
      const int64_t gap = points[i + 1].unix_ms - points[i - 1].unix_ms;
      if (gap < points[best + 1].unix_ms - points[best - 1].unix_ms) best = i;
    }
    points.erase(points.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return points;
}

Series::Series(const SeriesOptions& options, std::vector<HistoryPoint> older, std::vector<HistoryPoint> newer)
    : options_(options), older_(std::move(older)), newer_(std::move(newer)) {
  if (newer_.size() > newer_max() || older_.size() > options_.points_max - newer_max()) Age();
}

Series::Change Series::Add(HistoryPoint point) {
  const HistoryPoint* last = !newer_.empty() ? &newer_.back() : !older_.empty() ? &older_.back() : nullptr;
  if (last != nullptr) point.unix_ms = std::max(point.unix_ms, last->unix_ms);
  if (last != nullptr && last->step == point.step) {
    if (newer_.empty() || SameLoss(last->loss, point.loss)) return {};
    newer_.back().loss = point.loss;
    return {false, true};
  }
  if (newer_.size() >= 2 && point.unix_ms - newer_[newer_.size() - 2].unix_ms < options_.gap_ms) {
    newer_.back() = point;
    return {false, true};
  }
  const bool full = newer_.size() >= newer_max();
  if (full) Age();
  newer_.push_back(point);
  return {full, true};
}

void Series::Age() {
  older_.insert(older_.end(), newer_.begin(), newer_.end());
  newer_.clear();
  older_ = Thinned(std::move(older_), options_.points_max - newer_max());
}

std::vector<HistoryPoint> Series::points() const {
  std::vector<HistoryPoint> all = older_;
  all.insert(all.end(), newer_.begin(), newer_.end());
  return all;
}

}  // namespace hooke
