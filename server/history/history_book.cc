#include "server/history/history_book.h"

#include <algorithm>

#include "server/records/records.h"

namespace hooke {
namespace {

// A stored point takes at most 97 bytes. A series is two records, with three quarters of its points and with the rest.
// SQLite gives a record beyond 1002 bytes whole pages of 4 KiB of its own. In jobs of very many groups these pages
// would be most of the file. So in such jobs a series may have fewer points than its share of kJobMax.
constexpr size_t kSeriesMax = 512;
constexpr size_t kJobMax = 13312;
// At most so many points fit in a series of which only the larger record needs pages of its own.
constexpr size_t kOnePageSeries = 36;
// At most so many points fit in a series of which no record needs pages of its own.
constexpr size_t kNoPageSeries = 12;
constexpr uint32_t kGroupsOfShares = 110;
constexpr uint32_t kGroupsOfOnePage = 300;

SeriesOptions OptionsFor(SeriesKey series, uint32_t groups) {
  SeriesOptions options;
  options.points_max = SeriesPointsMax(groups);
  // Evaluations of the center are rare, and each counts.
  if (series == kCenterSeries) options.gap_ms = 0;
  return options;
}

}  // namespace

size_t SeriesPointsMax(uint32_t groups) {
  if (groups > kGroupsOfOnePage) return kNoPageSeries;
  if (groups > kGroupsOfShares) return kOnePageSeries;
  return std::min(kSeriesMax, kJobMax / (size_t{groups} + 1));
}

void HistoryBook::Add(const HistoryEntry& entry, absl::Duration steady) {
  const Key key = {entry.job_id, entry.series};
  const SeriesOptions options = OptionsFor(entry.series, entry.groups);
  Series& series = series_.try_emplace(key, options).first->second;
  series.SetPointsMax(options.points_max);  // The number of groups may have changed.
  const Series::Change change = series.Add(entry.point);
  if (!change.older && !change.newer) return;
  Series::Change& waiting = waiting_[key];
  waiting.older |= change.older;
  waiting.newer |= change.newer;
  if (!since_.has_value()) since_ = steady;
}

void HistoryBook::Load(const std::string& job_id, uint32_t groups, const std::map<SeriesKey, StoredSeries>& stored) {
  for (const auto& [series, points] : stored) {
    series_.insert_or_assign({job_id, series}, Series(OptionsFor(series, groups), points.older, points.newer));
  }
}

void HistoryBook::Forget(const std::string& job_id) {
  Erase(job_id);
  const Key first = {job_id, 0}, last = {job_id, kCenterSeries};
  waiting_.erase(waiting_.lower_bound(first), waiting_.upper_bound(last));
  out_.erase(out_.lower_bound(first), out_.upper_bound(last));
}

void HistoryBook::Erase(const std::string& job_id) {
  series_.erase(series_.lower_bound({job_id, 0}), series_.upper_bound({job_id, kCenterSeries}));
}

bool HistoryBook::Waits(const std::string& job_id) const {
  const auto first = waiting_.lower_bound({job_id, 0});
  return first != waiting_.end() && first->first.first == job_id;
}

bool HistoryBook::Has(const std::string& job_id) const {
  const auto first = series_.lower_bound({job_id, 0});
  return first != series_.end() && first->first.first == job_id;
}

std::vector<v1::HistoryPoint> HistoryBook::Points(const std::string& job_id, int64_t since_unix_ms) const {
  std::vector<v1::HistoryPoint> points;
  for (auto one = series_.lower_bound({job_id, 0}); one != series_.end() && one->first.first == job_id; ++one) {
    for (const std::vector<HistoryPoint>* part : {&one->second.older(), &one->second.newer()}) {
      for (const HistoryPoint& point : PointsAfter(*part, since_unix_ms)) {
        points.push_back(ToMessage(one->first.second, point));
      }
    }
  }
  return points;
}

void HistoryBook::Hurry() {
  if (since_.has_value()) since_ = -absl::InfiniteDuration();
}

std::map<std::string, Records> HistoryBook::Take() {
  std::map<std::string, Records> taken;
  for (const auto& [key, change] : waiting_) {
    const auto& [job_id, id] = key;
    const uint64_t number = JobNumberOf(job_id);
    const Series& series = series_.at(key);
    Records& records = taken[job_id];
    if (change.older) records[OlderKey(number, id)] = HistoryRecord(series.older());
    if (change.newer) records[NewerKey(number, id)] = HistoryRecord(series.newer());
  }
  out_ = std::exchange(waiting_, {});
  since_.reset();
  return taken;
}

void HistoryBook::Done(bool stored, absl::Duration steady,
                       const std::function<bool(const std::string& job_id)>& has_ended) {
  for (const auto& [key, change] : std::exchange(out_, {})) {
    if (stored) continue;
    waiting_[key].older |= change.older;
    waiting_[key].newer |= change.newer;
    since_ = steady;
  }
  std::set<std::string> jobs;
  for (const auto& [key, series] : series_) jobs.insert(key.first);
  for (const std::string& job_id : jobs) {
    if (!Waits(job_id) && has_ended(job_id)) Erase(job_id);
  }
}

}  // namespace hooke
