#include "client/profile/profile_table.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"
#include "job/trace/operation_text.h"

namespace hooke {
namespace {

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

std::string Head(const ProfileSummary& summary) {
  std::string head = absl::StrFormat(
      "%d %s of %d %s, together %.3g s in steps", summary.ranks, summary.ranks == 1 ? "rank" : "ranks", summary.groups,
      summary.groups == 1 ? "group" : "groups", static_cast<double>(summary.step_ns) / 1e9);
  if (summary.calls_left_out > 0) absl::StrAppend(&head, "; ", summary.calls_left_out, " calls had no room");
  return head;
}

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

}  // namespace

std::string ProfileTable(const ProfileSummary& summary) {
  std::vector<std::vector<std::string>> cells = {
      {"OPERATION", "BYTES", "CALLS", "ALL", "MIN US", "MEDIAN US", "P99 US", "GB/S", "OF STEPS", "FUSED", "BY"}};
  for (const ProfileRow& row : summary.rows) {
    cells.push_back({OperationText(row.operation), SizeText(row), absl::StrCat(row.calls), BytesText(row.bytes),
                     Microseconds(static_cast<double>(row.min_ns)), Microseconds(row.Quantile(0.5)),
                     Microseconds(row.Quantile(0.99)),
                     row.bytes == 0 ? "-" : absl::StrFormat("%.3g", row.GigabytesPerSecond()),
                     Percent(summary.ShareOf(row)), row.fused ? "yes" : "no", absl::StrJoin(row.algorithms, ",")});
  }
  // The column of algorithms is shown only if one is known.
  const bool named = std::any_of(summary.rows.begin(), summary.rows.end(),
                                 [](const ProfileRow& row) { return !row.algorithms.empty(); });
  if (!named) {
    for (std::vector<std::string>& line : cells) line.pop_back();
  }
  return absl::StrCat(Head(summary), "\n", FormatTable(cells));
}

std::string StepSplitTable(const std::vector<StepSplit>& groups) {
  if (groups.empty())
    return "no time of the last steps is known from all ranks of a group; try again in some seconds\n";
  std::vector<std::vector<std::string>> cells = {
      {"GROUP", "SECONDS", "COMPUTE", "WAITING", "COLLECTIVE", "EXCHANGE", "LAST TO COME"}};
  for (const StepSplit& split : groups) {
    const std::string last = split.ranks < 2 || split.collectives == 0
                                 ? "-"
                                 : absl::StrCat("rank ", split.last_rank, ", ", Percent(split.LastShare()));
    cells.push_back({absl::StrCat(split.group), absl::StrFormat("%.1f", static_cast<double>(split.window_ns) / 1e9),
                     Percent(split.ShareOf(split.compute_ns)), Percent(split.ShareOf(split.waiting_ns)),
                     Percent(split.ShareOf(split.collective_ns)), Percent(split.ShareOf(split.exchange_ns)), last});
  }
  return FormatTable(cells);
}

std::string ServerCoresLine(const std::vector<ServerCores>& servers) {
  if (servers.empty()) return "";
  return absl::StrCat("Cores that the servers keep busy: ",
                      absl::StrJoin(servers, ", ",
                                    [](std::string* out, const ServerCores& server) {
                                      absl::StrAppendFormat(out, "%s %.2f", Printable(server.address), server.cores);
                                    }),
                      "\n");
}

}  // namespace hooke
