#include "client/history/curves.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "client/history/series_name.h"

namespace hooke {
namespace {

int64_t BeginOf(const PlottedJob& job) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const v1::HistoryPoint& point : job.points) begin = std::min(begin, point.unix_ms());
  return begin;
}

double XOf(const v1::HistoryPoint& point, PlotAxis axis, int64_t begin) {
  if (axis == PlotAxis::kSteps) return static_cast<double>(point.step());
  return static_cast<double>(point.unix_ms() - begin) / 1000;
}

}  // namespace

std::vector<Curve> LossCurves(const std::vector<PlottedJob>& jobs, PlotAxis axis) {
  std::vector<Curve> curves;
  for (size_t j = 0; j < jobs.size(); ++j) {
    const int64_t begin = BeginOf(jobs[j]);
    const v1::HistoryPoint* before = nullptr;
    bool named = false;
    for (const v1::HistoryPoint& point : jobs[j].points) {
      if (!std::isfinite(point.loss())) continue;
      const bool begins = before == nullptr || !SameSeries(*before, point);
      const double x = XOf(point, axis, begin);
      if (begins || x < curves.back().points.back().first) {
        Curve& curve = curves.emplace_back();
        curve.center = !point.has_group();
        const size_t of_one = curve.center ? 0 : size_t{point.group()} + 1;
        curve.color = jobs.size() > 1 ? j : of_one;
        if (jobs.size() > 1 && !named) curve.label = jobs[j].job_id;
        if (jobs.size() == 1 && begins) curve.label = SeriesName(point);
        named = true;
      }
      curves.back().points.emplace_back(x, point.loss());
      before = &point;
    }
  }
  return curves;
}

std::vector<Curve> AccuracyCurves(const std::vector<PlottedJob>& jobs, PlotAxis axis) {
  std::vector<Curve> curves;
  for (size_t j = 0; j < jobs.size(); ++j) {
    const int64_t begin = BeginOf(jobs[j]);
    Curve curve;
    curve.color = j;
    curve.center = true;
    curve.label = jobs.size() > 1 ? jobs[j].job_id : "center";
    for (const v1::HistoryPoint& point : jobs[j].points) {
      if (!point.has_group() && std::isfinite(point.accuracy())) {
        curve.points.emplace_back(XOf(point, axis, begin), point.accuracy());
      }
    }
    std::stable_sort(curve.points.begin(), curve.points.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace hooke
