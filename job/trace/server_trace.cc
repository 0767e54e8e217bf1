#include "job/trace/server_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/trace/start_trace.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;

// The trace's process number of the first server. It is above those of ranks, and those in start_trace.cc.
constexpr uint64_t kFirstServer = (uint64_t{1} << 30) + (uint64_t{1} << 24);
// Each exchange arrow has an id above this number, which is above the ids of the arrows between spans of starts.
constexpr uint64_t kFirstArrow = uint64_t{1} << 32;

using RankId = std::pair<uint32_t, uint32_t>;  // Group and rank.

// Returns the phases (track 0) of each rank. `events` are sorted by group, rank and track, as CommonClock::events is.
std::map<RankId, absl::Span<const PlacedEvent>> PhasesByRank(absl::Span<const PlacedEvent> events) {
  std::map<RankId, absl::Span<const PlacedEvent>> phases;
  for (size_t begin = 0; begin < events.size();) {
    size_t end = begin;
    const auto same = [&events, begin](const PlacedEvent& other) {
      return other.group == events[begin].group && other.rank == events[begin].rank &&
             other.track == events[begin].track;
    };
    while (end < events.size() && same(events[end])) ++end;
    if (events[begin].track == 0)
      phases[{events[begin].group, events[begin].rank}] = events.subspan(begin, end - begin);
    begin = end;
  }
  return phases;
}

bool IsExchange(const PlacedEvent& phase) { return phase.event->phase() == v1::RankProgress::EXCHANGE; }

double Microseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

// Writes spans, names and arrows of the exchanges of one CommonClock.
class ExchangeLines {
 public:
  ExchangeLines(const CommonClock& clock, int64_t origin_ns, const TraceLines& lines)
      : clock_(clock), origin_ns_(origin_ns), lines_(lines), phases_(PhasesByRank(clock.events)) {}

  void WriteNames(const PlacedExchange& placed, const std::string& address, bool new_process) {
    const uint64_t process = ProcessOf(placed);
    if (new_process) {
      lines_(TraceName("process_name", process, 0, {{"name", absl::StrCat("server ", address)}}));
      lines_(TraceName("process_sort_index", process, 0, {{"sort_index", process}}));
    }
    const v1::ServedExchange& exchange = *placed.exchange;
    const std::string name = absl::StrCat("group ", exchange.group(), " rank ", exchange.rank());
    lines_(TraceName("thread_name", process, TrackOf(placed), {{"name", name}}));
    lines_(TraceName("thread_sort_index", process, TrackOf(placed), {{"sort_index", TrackOf(placed)}}));
  }

  void WriteSpan(const PlacedExchange& placed) {
    const v1::ServedExchange& exchange = *placed.exchange;
    lines_({{"name", "exchange"},
            {"cat", "server"},
            {"ph", "X"},
            {"ts", TraceMicroseconds(placed.begin_ns, origin_ns_)},
            {"dur", Microseconds(exchange.duration_ns())},
            {"pid", ProcessOf(placed)},
            {"tid", TrackOf(placed)},
            {"args",
             {{"sequence", exchange.sequence()},
              {"start", exchange.incarnation()},
              {"messages", exchange.messages()},
              {"received_bytes", exchange.received_bytes()},
              {"sent_bytes", exchange.sent_bytes()},
              {"work_us", Microseconds(exchange.work_ns())},
              {"wait_us", Microseconds(exchange.wait_ns())}}}});
    WriteArrows(placed);
  }

 private:
  struct Point {
    int64_t at_ns = 0;
    uint64_t process = 0;
    uint64_t track = 0;
  };

  static uint64_t ProcessOf(const PlacedExchange& placed) { return kFirstServer + placed.server; }
  static uint64_t TrackOf(const PlacedExchange& placed) {
    return TraceProcessOf(placed.exchange->group(), placed.exchange->rank());
  }
  static Point BeginOf(const PlacedEvent& phase) {
    return {phase.begin_ns, TraceProcessOf(phase.group, phase.rank), phase.track};
  }

  void WriteArrows(const PlacedExchange& placed) {
    const auto phases = phases_.find({placed.exchange->group(), placed.exchange->rank()});
    if (phases == phases_.end()) return;
    const ExchangeArrows arrows = ArrowsOf(placed, phases->second, clock_.error_ns);
    const Point begin = {placed.begin_ns, ProcessOf(placed), TrackOf(placed)};
    if (arrows.from != nullptr) WriteArrow(BeginOf(*arrows.from), begin);
    // The viewer looks for the span at the arrow's time, which must lie in the span.
    const uint64_t duration = placed.exchange->duration_ns();
    const Point end = {EndOf(placed.begin_ns, duration - std::min<uint64_t>(duration, 1)), begin.process, begin.track};
    if (arrows.to != nullptr) WriteArrow(end, BeginOf(*arrows.to));
  }

  void WriteArrow(const Point& from, const Point& to) {
    ++arrows_;
    for (const auto& [what, point] : {std::make_pair("s", from), std::make_pair("f", to)}) {
      lines_({{"name", "exchange"},
              {"cat", "server"},
              {"ph", what},
              {"id", kFirstArrow + arrows_},
              {"bp", "e"},
              {"ts", TraceMicroseconds(point.at_ns, origin_ns_)},
              {"pid", point.process},
              {"tid", point.track}});
    }
  }

  const CommonClock& clock_;
  const int64_t origin_ns_;
  const TraceLines& lines_;
  const std::map<RankId, absl::Span<const PlacedEvent>> phases_;
  uint64_t arrows_ = 0;
};

std::string WhyNone(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return "none of this job is in memory there";
    case absl::StatusCode::kUnimplemented:
      return "an older version, which records none";
    case absl::StatusCode::kDeadlineExceeded:
      return "no answer in time";
    default:
      return std::string(status.message());
  }
}

}  // namespace

ExchangeArrows ArrowsOf(const PlacedExchange& exchange, absl::Span<const PlacedEvent> phases, int64_t error_ns) {
  ExchangeArrows arrows;
  const int64_t begin = exchange.begin_ns;
  const int64_t end = EndOf(begin, exchange.exchange->duration_ns());
  const auto slack = static_cast<uint64_t>(std::max<int64_t>(error_ns, 0));
  const auto is_after = [slack](int64_t at, const PlacedEvent& phase) { return EndOf(at, slack) < phase.begin_ns; };
  // From the last phase that may have begun by then, back to the one that began the exchange.
  auto from = std::upper_bound(phases.begin(), phases.end(), begin, is_after);
  while (from != phases.begin() && arrows.from == nullptr) {
    const PlacedEvent& phase = *--from;
    if (phase.event->step() < exchange.exchange->sequence()) break;
    if (IsExchange(phase) && phase.event->step() == exchange.exchange->sequence()) arrows.from = &phase;
  }
  if (arrows.from == nullptr) return arrows;
  // A rank that waits for its answers does nothing else: its exchange phases follow one another.
  auto next = from;
  while (next != phases.end() && IsExchange(*next)) ++next;
  if (next != phases.end() && end <= EndOf(next->begin_ns, slack)) arrows.to = &*next;
  return arrows;
}

void WriteExchanges(const CommonClock& clock, absl::Span<const ExchangesOfServer> servers, int64_t origin_ns,
                    const TraceLines& lines) {
  ExchangeLines writer(clock, origin_ns, lines);
  const PlacedExchange* last = nullptr;
  for (const PlacedExchange& placed : clock.exchanges) {
    const bool new_process = last == nullptr || last->server != placed.server;
    const bool new_track = new_process || last->exchange->group() != placed.exchange->group() ||
                           last->exchange->rank() != placed.exchange->rank();
    if (new_track) writer.WriteNames(placed, servers[placed.server].address, new_process);
    writer.WriteSpan(placed);
    last = &placed;
  }
}

std::vector<std::string> NotesOn(const CommonClock& clock, absl::Span<const ExchangesOfServer> servers) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const ExchangesOfServer& server : servers) {
    if (!server.answer.ok()) by_reason[WhyNone(server.answer.status())].push_back(server.address);
  }
  for (const size_t index : clock.servers_left_out) {
    by_reason["its clock is not known yet; try again in some seconds"].push_back(servers[index].address);
  }
  for (const size_t index : clock.servers_apart) {
    by_reason["its last ones are not from the time of the ranks' last reports; try again in some seconds"].push_back(
        servers[index].address);
  }
  std::vector<std::string> notes;
  notes.reserve(by_reason.size());
  for (const auto& [reason, addresses] : by_reason) {
    notes.push_back(absl::StrCat("the trace has no exchanges of ", addresses.size() == 1 ? "server " : "servers ",
                                 absl::StrJoin(addresses, ", "), ": ", reason));
  }
  return notes;
}

}  // namespace hooke
