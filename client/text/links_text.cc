#include "client/text/links_text.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/text/job_text.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Examples: "94.2 Mbit/s", "25.0 Gbit/s"; "-" if it is not known.
std::string RateText(double megabits) {
  if (!(megabits > 0)) return "-";
  return megabits < 1000 ? absl::StrFormat("%.1f Mbit/s", megabits) : absl::StrFormat("%.1f Gbit/s", megabits / 1000);
}

Rows InterfaceRows(const v1::ListNodesResponse& nodes) {
  Rows rows = {{"WORKER", "SITE", "ADDRESS", "INTERFACE", "SPEED"}};
  for (const v1::NodeStatus& node : nodes.nodes()) {
    if (node.kind() != v1::NodeStatus::WORKER) continue;
    if (node.interfaces().empty()) {
      rows.push_back({Printable(node.name()), Printable(node.site()), "-", "-", "-"});
    }
    for (const v1::NodeInterface& one : node.interfaces()) {
      rows.push_back({Printable(node.name()), Printable(node.site()), Printable(one.address()), Printable(one.name()),
                      RateText(one.megabits())});
    }
  }
  return rows;
}

// Two workers on one node are no two nodes for MPI, so no group runs on both.
bool CouldRunTogether(const v1::NodeStatus& a, const v1::NodeStatus& b) {
  return a.alive() && b.alive() && a.site() == b.site() && a.mpi() == b.mpi() && !a.interfaces().empty() &&
         !b.interfaces().empty() && a.interfaces(0).address() != b.interfaces(0).address();
}

}  // namespace

std::string LinksText(const v1::ListNodesResponse& nodes, absl::Time now) {
  Rows rows = {{"FROM", "TO", "ROUND TRIP", "BANDWIDTH", "MEASURED"}};
  std::set<std::pair<std::string, std::string>> measured;
  for (const v1::NodeLink& link : nodes.links()) {
    measured.insert(std::minmax(link.from(), link.to()));
    rows.push_back({Printable(link.from()), Printable(link.to()),
                    absl::StrFormat("%.3f ms", 1000 * link.round_trip_seconds()),
                    RateText(link.bytes_per_second() * 8 / 1e6),
                    absl::StrCat(DurationText(now - absl::FromUnixMillis(link.measured_unix_ms())), " ago")});
  }
  size_t others = 0;
  for (auto a = nodes.nodes().begin(); a != nodes.nodes().end(); ++a) {
    if (a->kind() != v1::NodeStatus::WORKER) continue;
    for (auto b = a + 1; b != nodes.nodes().end(); ++b) {
      if (!CouldRunTogether(*a, *b) || measured.count(std::minmax(a->name(), b->name())) > 0) continue;
      if (++others > kUnmeasuredMax) continue;
      rows.push_back({Printable(a->name()), Printable(b->name()), "-", "-", "not yet: no group has run on both"});
    }
  }
  std::string text = absl::StrCat(FormatTable(InterfaceRows(nodes)), "\n");
  if (rows.size() == 1) return absl::StrCat(text, "no two workers of a site can run a group together\n");
  absl::StrAppend(&text, FormatTable(rows));
  if (others > kUnmeasuredMax) {
    absl::StrAppend(&text, "and ", others - kUnmeasuredMax, " more pairs that no group has run on\n");
  }
  return text;
}

nlohmann::ordered_json LinkToJson(const v1::NodeLink& link) {
  const bool known = link.bytes_per_second() > 0;
  return {
      {"from", link.from()},
      {"to", link.to()},
      {"round_trip_seconds", link.round_trip_seconds()},
      {"bytes_per_second", known ? nlohmann::ordered_json(link.bytes_per_second()) : nlohmann::ordered_json(nullptr)},
      {"measured_unix_ms", link.measured_unix_ms()}};
}

}  // namespace hooke
