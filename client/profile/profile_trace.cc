#include "client/profile/profile_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/profile/profile_summary.h"
#include "client/text/listing.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kRanksMax = 1024;  // The most ranks in a group.

// A rank whose machine has no name is taken to have a clock of its own.
std::string MachineOf(const v1::ReadProfileResponse& rank) {
  if (!rank.profile().machine().empty()) return rank.profile().machine();
  return absl::StrCat("rank ", rank.group(), "/", rank.rank());
}

uint64_t ProcessOf(const v1::ReadProfileResponse& rank) { return rank.group() * kRanksMax + rank.rank() % kRanksMax; }

// For each machine, the offset with the smallest error.
using Clocks = std::map<std::string, std::optional<v1::ClockOffset>>;
Clocks ClocksOf(absl::Span<const v1::ReadProfileResponse> ranks) {
  Clocks clocks;
  for (const v1::ReadProfileResponse& rank : ranks) {
    std::optional<v1::ClockOffset>& best = clocks[MachineOf(rank)];
    const v1::RankProfile& profile = rank.profile();
    if (!profile.has_clock() || profile.clock().error_ns() < 0) continue;
    if (!best.has_value() || profile.clock().error_ns() < best->error_ns()) best = profile.clock();
  }
  // A single machine needs no offset.
  if (clocks.size() == 1 && !clocks.begin()->second.has_value()) clocks.begin()->second.emplace();
  return clocks;
}

// The sum of the two largest errors bounds how far two machines may be apart.
int64_t ErrorOf(const Clocks& clocks) {
  std::vector<int64_t> errors;
  for (const auto& [machine, clock] : clocks) {
    if (clock.has_value()) errors.push_back(clock->error_ns());
  }
  if (errors.size() < 2) return 0;
  std::sort(errors.rbegin(), errors.rend());
  return errors[1] > std::numeric_limits<int64_t>::max() - errors[0] ? std::numeric_limits<int64_t>::max()
                                                                     : errors[0] + errors[1];
}

struct Placed {
  uint64_t process = 0;
  uint32_t track = 0;
  int64_t begin_ns = 0;  // On the common clock.
  const v1::TraceEvent* event = nullptr;
};

std::vector<Placed> Place(absl::Span<const v1::ReadProfileResponse> ranks, const Clocks& clocks) {
  std::vector<Placed> placed;
  for (const v1::ReadProfileResponse& rank : ranks) {
    const std::optional<v1::ClockOffset>& clock = clocks.at(MachineOf(rank));
    if (!clock.has_value()) continue;
    for (const v1::TraceEvent& event : rank.profile().events()) {
      // Unsigned, because a peer's numbers may overflow.
      const uint64_t begin = event.begin_ns() + static_cast<uint64_t>(clock->offset_ns());
      placed.push_back({ProcessOf(rank), event.track(), static_cast<int64_t>(begin), &event});
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.process, a.track, a.begin_ns) < std::tie(b.process, b.track, b.begin_ns);
  });
  return placed;
}

ordered_json EventJson(const Placed& placed, int64_t origin_ns) {
  const v1::TraceEvent& event = *placed.event;
  const bool phase = placed.track == 0;
  const uint64_t since = static_cast<uint64_t>(placed.begin_ns) - static_cast<uint64_t>(origin_ns);
  ordered_json arguments;
  std::string name;
  if (phase) {
    name = v1::RankProgress::Phase_IsValid(event.phase())
               ? absl::AsciiStrToLower(v1::RankProgress::Phase_Name(event.phase()))
               : "unknown";
    arguments = {{"step", event.step()}};
  } else {
    name = OperationText(event.operation());
    arguments = {{"bytes", event.bytes()}, {"fused", event.fused()}};
  }
  return {{"name", name},
          {"cat", phase ? "phase" : "collective"},
          {"ph", "X"},
          {"ts", static_cast<double>(since) / 1000},
          {"dur", static_cast<double>(event.duration_ns()) / 1000},
          {"pid", placed.process},
          {"tid", placed.track},
          {"args", arguments}};
}

ordered_json Metadata(const char* what, const Placed& placed, const ordered_json& arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", placed.process}, {"tid", placed.track}, {"args", arguments}};
}

// Names the processes and threads for the viewer. `placed` must be sorted.
std::vector<ordered_json> Names(const std::vector<Placed>& placed) {
  std::vector<ordered_json> names;
  const Placed* last = nullptr;
  for (const Placed& some : placed) {
    const bool new_process = last == nullptr || last->process != some.process;
    if (new_process) {
      const std::string name = absl::StrCat("group ", some.process / kRanksMax, " rank ", some.process % kRanksMax);
      names.push_back(Metadata("process_name", some, {{"name", name}}));
      names.push_back(Metadata("process_sort_index", some, {{"sort_index", some.process}}));
    }
    if (new_process || last->track != some.track) {
      const std::string name = some.track == 0   ? "phases"
                               : some.track == 1 ? "collectives"
                                                 : absl::StrCat("collectives ", some.track);
      names.push_back(Metadata("thread_name", some, {{"name", name}}));
    }
    last = &some;
  }
  return names;
}

}  // namespace

absl::StatusOr<Trace> MakeTrace(absl::string_view job_id, absl::Span<const v1::ReadProfileResponse> ranks) {
  const Clocks clocks = ClocksOf(ranks);
  const std::vector<Placed> placed = Place(ranks, clocks);
  if (placed.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the profile of job ", job_id, " has no trace that could be put on one clock"));
  }
  Trace trace;
  trace.events = placed.size();
  trace.machines = static_cast<uint32_t>(clocks.size());
  trace.error_ns = ErrorOf(clocks);
  for (const v1::ReadProfileResponse& rank : ranks) {
    ++(clocks.at(MachineOf(rank)).has_value() ? trace.ranks : trace.ranks_left_out);
  }
  int64_t origin_ns = placed.front().begin_ns;
  for (const Placed& some : placed) origin_ns = std::min(origin_ns, some.begin_ns);
  const ordered_json about = {{"job_id", job_id},
                              {"begin_unix_ns", origin_ns},
                              {"machines", trace.machines},
                              {"clock_error_us", static_cast<double>(trace.error_ns) / 1000},
                              {"ranks_left_out", trace.ranks_left_out}};
  // One line for each event: a single JSON value of a long trace would take many times the memory.
  trace.json =
      absl::StrCat("{\"displayTimeUnit\": \"ms\",\n\"otherData\": ", DumpJson(about), ",\n\"traceEvents\": [\n");
  for (const ordered_json& name : Names(placed)) absl::StrAppend(&trace.json, DumpJson(name), ",\n");
  for (const Placed& some : placed) {
    absl::StrAppend(&trace.json, DumpJson(EventJson(some, origin_ns)), &some == &placed.back() ? "\n" : ",\n");
  }
  absl::StrAppend(&trace.json, "]}\n");
  return trace;
}

}  // namespace hooke
