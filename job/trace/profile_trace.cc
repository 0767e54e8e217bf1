#include "job/trace/profile_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "job/trace/common_clock.h"
#include "job/trace/operation_text.h"
#include "job/trace/server_trace.h"
#include "job/trace/start_trace.h"
#include "job/trace/trace_line.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

uint64_t ProcessOf(const PlacedEvent& placed) { return TraceProcessOf(placed.group, placed.rank); }

ordered_json EventJson(const PlacedEvent& placed, int64_t origin_ns) {
  const v1::TraceEvent& event = *placed.event;
  const bool phase = placed.track == 0;

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
          {"ts", TraceMicroseconds(placed.begin_ns, origin_ns)},
          {"dur", static_cast<double>(event.duration_ns()) / 1000},
          {"pid", ProcessOf(placed)},
          {"tid", placed.track},
          {"args", arguments}};
}

// Names the processes and threads for the viewer. `placed` must be sorted.
void WriteNames(const std::vector<PlacedEvent>& placed, const TraceLines& lines) {
  const PlacedEvent* last = nullptr;
  for (const PlacedEvent& some : placed) {
    const bool new_process = last == nullptr || last->group != some.group || last->rank != some.rank;
    const uint64_t process = ProcessOf(some);
    if (new_process) {
      const std::string name = absl::StrCat("group ", some.group, " rank ", some.rank);
      lines(TraceName("process_name", process, some.track, {{"name", name}}));
      lines(TraceName("process_sort_index", process, some.track, {{"sort_index", process}}));
    }
    if (new_process || last->track != some.track) {
      const std::string name = some.track == 0   ? "phases"
                               : some.track == 1 ? "collectives"
                                                 : absl::StrCat("collectives ", some.track);
      lines(TraceName("thread_name", process, some.track, {{"name", name}}));
    }
    last = &some;
  }
}

void WriteStarts(const StartTrace& starts, int64_t origin_ns, const TraceLines& lines) {
  for (const StartTrack& track : starts.tracks) {
    lines(TraceName("process_name", track.process, track.track, {{"name", track.process_name}}));
    lines(TraceName("process_sort_index", track.process, track.track, {{"sort_index", track.sort_index}}));
    lines(TraceName("thread_name", track.process, track.track, {{"name", track.name}}));
  }
  std::map<uint64_t, std::vector<const StartSlice*>> arrows;
  for (const StartSlice& slice : starts.slices) {
    ordered_json arguments = ordered_json::object();
    for (const auto& [name, value] : slice.arguments) arguments[name] = value;
    lines({{"name", slice.name},
           {"cat", "start"},
           {"ph", "X"},
           {"ts", TraceMicroseconds(slice.begin_ns, origin_ns)},
           {"dur", static_cast<double>(slice.duration_ns) / 1000},
           {"pid", slice.process},
           {"tid", slice.track},
           {"args", arguments}});
    if (slice.arrow != 0) arrows[slice.arrow].push_back(&slice);
  }
  for (auto& [number, joined] : arrows) {
    std::stable_sort(joined.begin(), joined.end(),
                     [](const StartSlice* a, const StartSlice* b) { return a->begin_ns < b->begin_ns; });
    for (const StartSlice* slice : joined) {
      const char* what = slice == joined.front() ? "s" : slice == joined.back() ? "f" : "t";
      lines({{"name", "start"},
             {"cat", "start"},
             {"ph", what},
             {"id", number},
             {"bp", "e"},
             {"ts", TraceMicroseconds(slice->begin_ns, origin_ns)},
             {"pid", slice->process},
             {"tid", slice->track}});
    }
  }
}

}  // namespace

absl::StatusOr<Trace> MakeTrace(absl::string_view job_id, absl::Span<const v1::ReadProfileResponse> ranks,
                                const v1::ReadStartsResponse& starts, absl::Span<const ExchangesOfServer> servers) {
  const CommonClock clock = PlaceEvents(ranks, servers);
  const std::vector<PlacedEvent>& placed = clock.events;
  const StartTrace of_starts = clock.is_unix ? TraceStarts(starts) : StartTrace();
  if (placed.empty() && of_starts.slices.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the profile of job ", job_id,
                     " has no trace that could be put on one clock; `hooke profile` without --trace shows its table"));
  }
  Trace trace;
  trace.events = placed.size();
  trace.starts = of_starts.starts;
  trace.exchanges = clock.exchanges.size();
  trace.machines = clock.machines;
  trace.error_ns = clock.error_ns;
  trace.ranks = clock.ranks;
  trace.ranks_left_out = clock.ranks_left_out;
  trace.notes = NotesOn(clock, servers);
  int64_t origin_ns = std::numeric_limits<int64_t>::max();
  for (const PlacedEvent& some : placed) origin_ns = std::min(origin_ns, some.begin_ns);
  for (const StartSlice& slice : of_starts.slices) origin_ns = std::min(origin_ns, slice.begin_ns);
  for (const PlacedExchange& some : clock.exchanges) origin_ns = std::min(origin_ns, some.begin_ns);
  const ordered_json about = {{"job_id", job_id},
                              {"begin_unix_ns", origin_ns},
                              {"machines", trace.machines},
                              {"clock_error_us", static_cast<double>(trace.error_ns) / 1000},
                              {"ranks_left_out", trace.ranks_left_out},
                              {"starts", trace.starts},
                              {"exchanges", trace.exchanges},
                              {"notes", trace.notes}};
  trace.json =
      absl::StrCat("{\"displayTimeUnit\": \"ms\",\n\"otherData\": ", LineText(about), ",\n\"traceEvents\": [\n");
  // Writes one line for each event. A single JSON value of a long trace would take many times the memory.
  const TraceLines lines = [&trace, between = ""](const ordered_json& line) mutable {
    absl::StrAppend(&trace.json, std::exchange(between, ",\n"), LineText(line));
  };
  WriteNames(placed, lines);
  WriteStarts(of_starts, origin_ns, lines);
  for (const PlacedEvent& some : placed) lines(EventJson(some, origin_ns));
  WriteExchanges(clock, servers, origin_ns, lines);
  absl::StrAppend(&trace.json, "\n]}\n");
  return trace;
}

}  // namespace hooke
