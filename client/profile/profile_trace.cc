#include "client/profile/profile_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/profile/common_clock.h"
#include "client/profile/profile_summary.h"
#include "client/text/listing.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

uint64_t ProcessOf(const PlacedEvent& placed) { return placed.group * kJobRanksMax + placed.rank % kJobRanksMax; }

ordered_json EventJson(const PlacedEvent& placed, int64_t origin_ns) {
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
          {"pid", ProcessOf(placed)},
          {"tid", placed.track},
          {"args", arguments}};
}

ordered_json Metadata(const char* what, const PlacedEvent& placed, const ordered_json& arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", ProcessOf(placed)}, {"tid", placed.track}, {"args", arguments}};
}

// Names the processes and threads for the viewer. `placed` must be sorted.
std::vector<ordered_json> Names(const std::vector<PlacedEvent>& placed) {
  std::vector<ordered_json> names;
  const PlacedEvent* last = nullptr;
  for (const PlacedEvent& some : placed) {
    const bool new_process = last == nullptr || last->group != some.group || last->rank != some.rank;
    if (new_process) {
      const std::string name = absl::StrCat("group ", some.group, " rank ", some.rank);
      names.push_back(Metadata("process_name", some, {{"name", name}}));
      names.push_back(Metadata("process_sort_index", some, {{"sort_index", ProcessOf(some)}}));
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
  const CommonClock clock = PlaceEvents(ranks);
  const std::vector<PlacedEvent>& placed = clock.events;
  if (placed.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the profile of job ", job_id,
                     " has no trace that could be put on one clock; `hooke profile` without --trace shows its table"));
  }
  Trace trace;
  trace.events = placed.size();
  trace.machines = clock.machines;
  trace.error_ns = clock.error_ns;
  trace.ranks = clock.ranks;
  trace.ranks_left_out = clock.ranks_left_out;
  int64_t origin_ns = placed.front().begin_ns;
  for (const PlacedEvent& some : placed) origin_ns = std::min(origin_ns, some.begin_ns);
  const ordered_json about = {{"job_id", job_id},
                              {"begin_unix_ns", origin_ns},
                              {"machines", trace.machines},
                              {"clock_error_us", static_cast<double>(trace.error_ns) / 1000},
                              {"ranks_left_out", trace.ranks_left_out}};
  // Writes one line for each event. A single JSON value of a long trace would take many times the memory.
  trace.json =
      absl::StrCat("{\"displayTimeUnit\": \"ms\",\n\"otherData\": ", DumpJson(about), ",\n\"traceEvents\": [\n");
  for (const ordered_json& name : Names(placed)) absl::StrAppend(&trace.json, DumpJson(name), ",\n");
  for (const PlacedEvent& some : placed) {
    absl::StrAppend(&trace.json, DumpJson(EventJson(some, origin_ns)), &some == &placed.back() ? "\n" : ",\n");
  }
  absl::StrAppend(&trace.json, "]}\n");
  return trace;
}

}  // namespace hooke
