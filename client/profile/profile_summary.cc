#include "client/profile/profile_summary.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/text/job_text.h"
#include "client/text/listing.h"
#include "job/trace/operation_text.h"

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
  if (!some.algorithm().empty()) row.algorithms.insert(Printable(some.algorithm()));
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  // Most sizes are whole numbers; those get no decimals.
  if (value == std::floor(value)) return absl::StrFormat("%.0f %s", value, kUnits[unit]);
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

// Returns the text of a row's sizes. A bin is "64 KiB-128 KiB", from the first up to but not including the second. An
// exact size has all digits.
std::string SizeText(const ProfileRow& row) {
  if (row.bytes_min == row.bytes_max) return absl::StrCat(row.bytes_max);
  return absl::StrCat(BytesText(row.bytes_min), "-", row.bytes_max == ~uint64_t{0} ? "" : BytesText(row.bytes_max + 1));
}

std::string Microseconds(double ns) { return absl::StrFormat("%.1f", ns / 1000); }

double GigabytesPerSecond(const ProfileRow& row) {
  return row.time_ns == 0 ? 0 : static_cast<double>(row.bytes) / static_cast<double>(row.time_ns);
}

double ShareOf(const ProfileSummary& summary, const ProfileRow& row) {
  return summary.step_ns == 0 ? 0 : static_cast<double>(row.step_ns) / static_cast<double>(summary.step_ns);
}

std::string Head(const ProfileSummary& summary) {
  std::string head = absl::StrFormat(
      "%d %s of %d %s, together %.3g s in steps", summary.ranks, summary.ranks == 1 ? "rank" : "ranks", summary.groups,
      summary.groups == 1 ? "group" : "groups", static_cast<double>(summary.step_ns) / 1e9);
  if (summary.calls_left_out > 0) absl::StrAppend(&head, "; ", summary.calls_left_out, " calls had no room");
  return head;
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

std::string ProfileTable(const ProfileSummary& summary) {
  std::vector<std::vector<std::string>> cells = {
      {"OPERATION", "BYTES", "CALLS", "ALL", "MIN US", "MEDIAN US", "P99 US", "GB/S", "OF STEPS", "FUSED", "BY"}};
  for (const ProfileRow& row : summary.rows) {
    cells.push_back({OperationText(row.operation), SizeText(row), absl::StrCat(row.calls), BytesText(row.bytes),
                     Microseconds(static_cast<double>(row.min_ns)), Microseconds(row.Quantile(0.5)),
                     Microseconds(row.Quantile(0.99)),
                     row.bytes == 0 ? "-" : absl::StrFormat("%.3g", GigabytesPerSecond(row)),
                     absl::StrFormat("%.1f %%", 100 * ShareOf(summary, row)), row.fused ? "yes" : "no",
                     absl::StrJoin(row.algorithms, ",")});
  }
  // The column of algorithms is shown only if one is known.
  const bool named = std::any_of(summary.rows.begin(), summary.rows.end(),
                                 [](const ProfileRow& row) { return !row.algorithms.empty(); });
  if (!named) {
    for (std::vector<std::string>& line : cells) line.pop_back();
  }
  return absl::StrCat(Head(summary), "\n", FormatTable(cells));
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
                    {"gb_per_s", GigabytesPerSecond(row)},
                    {"step_share", ShareOf(summary, row)}});
  }
  return {{"groups", summary.groups},
          {"ranks", summary.ranks},
          {"step_seconds", static_cast<double>(summary.step_ns) / 1e9},
          {"calls_left_out", summary.calls_left_out},
          {"collectives", rows}};
}

}  // namespace hooke
