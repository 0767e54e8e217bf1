#include "job/profile/profile_summary.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "job/trace/operation_text.h"
#include "job/visible_text.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;
using RowKey = std::tuple<int, uint64_t, uint64_t, bool>;

// Returns the bin of a size: from a power of two up to the next.
std::pair<uint64_t, uint64_t> BinOf(uint64_t bytes) {
  if (bytes == 0) return {0, 0};
  const uint64_t begin = uint64_t{1} << (63 - __builtin_clzll(bytes));
  return {begin, begin + (begin - 1)};
}

RowKey KeyOf(const v1::CollectiveProfile& some, ProfileSizes sizes) {
  const auto range =
      sizes == ProfileSizes::kBins ? BinOf(some.bytes_max()) : std::pair(some.bytes_min(), some.bytes_max());
  return {some.operation(), range.first, range.second, some.fused()};
}

void Add(const v1::CollectiveProfile& some, ProfileRow& row) {
  const int buckets = std::min({some.bucket_begin_ns_size(), some.bucket_end_ns_size(), some.bucket_calls_size()});
  uint64_t calls = 0;
  for (int i = 0; i < buckets; ++i) {
    row.buckets[{some.bucket_begin_ns(i), some.bucket_end_ns(i)}] += some.bucket_calls(i);
    calls += some.bucket_calls(i);
  }
  row.min_ns = row.calls == 0 ? some.min_ns() : std::min(row.min_ns, some.min_ns());
  row.max_ns = std::max(row.max_ns, some.max_ns());
  row.calls += calls;
  row.bytes += some.bytes();
  row.time_ns += some.time_ns();
  row.step_ns += some.step_ns();
  if (!some.algorithm().empty()) row.algorithms.insert(Escaped(some.algorithm()));
}

}  // namespace

double ProfileRow::Quantile(double q) const {
  auto left = static_cast<uint64_t>(std::max(1.0, std::ceil(q * static_cast<double>(calls))));
  for (const auto& [range, count] : buckets) {
    if (left > count) {
      left -= count;
      continue;
    }
    const double middle = static_cast<double>(range.first) + static_cast<double>(range.second - range.first - 1) / 2;
    return std::max(static_cast<double>(min_ns), std::min(static_cast<double>(max_ns), middle));
  }
  return static_cast<double>(max_ns);
}

double ProfileRow::GigabytesPerSecond() const {
  return time_ns == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(time_ns);
}

double ProfileSummary::ShareOf(const ProfileRow& row) const {
  return step_ns == 0 ? 0 : static_cast<double>(row.step_ns) / static_cast<double>(step_ns);
}

ProfileSummary Summarize(absl::Span<const v1::ReadProfileResponse> ranks, ProfileSizes sizes) {
  ProfileSummary summary;
  std::set<uint32_t> groups;
  std::map<RowKey, ProfileRow> rows;
  for (const v1::ReadProfileResponse& rank : ranks) {
    groups.insert(rank.group());
    ++summary.ranks;
    summary.step_ns += rank.profile().step_ns();
    summary.calls_left_out += rank.profile().calls_left_out();
    for (const v1::CollectiveProfile& some : rank.profile().collectives()) {
      const RowKey key = KeyOf(some, sizes);
      ProfileRow& row = rows[key];
      row.operation = some.operation();
      std::tie(std::ignore, row.bytes_min, row.bytes_max, row.fused) = key;
      Add(some, row);
    }
  }
  summary.groups = static_cast<uint32_t>(groups.size());
  for (auto& [key, row] : rows) summary.rows.push_back(std::move(row));
  return summary;
}

ordered_json ProfileToJson(const ProfileSummary& summary) {
  ordered_json rows = ordered_json::array();
  for (const ProfileRow& row : summary.rows) {
    rows.push_back({{"operation", OperationText(row.operation)},
                    {"bytes_min", row.bytes_min},
                    {"bytes_max", row.bytes_max},
                    {"fused", row.fused},
                    {"algorithms", row.algorithms},
                    {"calls", row.calls},
                    {"bytes", row.bytes},
                    {"seconds", static_cast<double>(row.time_ns) / 1e9},
                    {"min_us", static_cast<double>(row.min_ns) / 1000},
                    {"median_us", row.Quantile(0.5) / 1000},
                    {"p99_us", row.Quantile(0.99) / 1000},
                    {"max_us", static_cast<double>(row.max_ns) / 1000},
                    {"gb_per_s", row.GigabytesPerSecond()},
                    {"step_share", summary.ShareOf(row)}});
  }
  return {{"groups", summary.groups},
          {"ranks", summary.ranks},
          {"step_seconds", static_cast<double>(summary.step_ns) / 1e9},
          {"calls_left_out", summary.calls_left_out},
          {"collectives", rows}};
}

}  // namespace hooke
