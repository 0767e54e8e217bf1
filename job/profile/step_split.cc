#include "job/profile/step_split.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "job/trace/common_clock.h"

namespace hooke {
namespace {

using nlohmann::ordered_json;
using Phase = v1::RankProgress;

// Events with later times are left out, because no clock shows such times. Below this bound, the sum of a begin and a
// duration does not overflow.
constexpr int64_t kTimeMax = std::numeric_limits<int64_t>::max() / 4;

struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
};

int64_t Length(const Interval& some) { return std::max<int64_t>(some.end - some.begin, 0); }
Interval Overlap(const Interval& a, const Interval& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

bool IsPlausible(const PlacedEvent& placed) {
  return placed.begin_ns >= 0 && placed.begin_ns <= kTimeMax &&
         placed.event->duration_ns() <= static_cast<uint64_t>(kTimeMax);
}

Interval IntervalOf(const PlacedEvent& placed) {
  return {placed.begin_ns, placed.begin_ns + static_cast<int64_t>(placed.event->duration_ns())};
}

struct Entered {
  uint32_t rank = 0;
  Interval call;
};
// A collective is known by its track and its number on the track.
using CallKey = std::pair<uint32_t, uint64_t>;

// The events of one rank.
struct RankEvents {
  Interval known{kTimeMax, 0};  // From the first event to the end of the last phase.
  std::vector<const PlacedEvent*> phases;
  std::vector<Interval> waits;
};

// The events of one group.
struct GroupEvents {
  std::map<uint32_t, RankEvents> ranks;
  std::map<CallKey, std::vector<Entered>> calls;
};

std::map<uint32_t, GroupEvents> ByGroup(const CommonClock& clock) {
  std::map<uint32_t, GroupEvents> groups;
  for (const PlacedEvent& placed : clock.events) {
    if (!IsPlausible(placed)) continue;
    GroupEvents& group = groups[placed.group];
    RankEvents& rank = group.ranks[placed.rank];
    const Interval interval = IntervalOf(placed);
    rank.known.begin = std::min(rank.known.begin, interval.begin);
    if (placed.track == 0) {
      rank.known.end = std::max(rank.known.end, interval.end);
      rank.phases.push_back(&placed);
    } else if (placed.event->call() > 0) {
      group.calls[{placed.track, placed.event->call()}].push_back({placed.rank, interval});
    }
  }
  return groups;
}

// The time for which the events of all ranks are known.
Interval WindowOf(const GroupEvents& group) {
  Interval window{0, kTimeMax};
  for (const auto& [rank, events] : group.ranks) window = Overlap(window, events.known);
  return window;
}

// Notes for each rank when it waited in a collective, and counts who was last.
void AddWaits(const Interval& window, GroupEvents& group, StepSplit& split) {
  std::map<uint32_t, uint64_t> last_times;
  for (const auto& [key, entered] : group.calls) {
    if (entered.size() != group.ranks.size()) continue;
    const Entered& last = *std::max_element(
        entered.begin(), entered.end(), [](const Entered& a, const Entered& b) { return a.call.begin < b.call.begin; });
    if (last.call.begin < window.begin || last.call.begin >= window.end) continue;
    ++split.collectives;
    ++last_times[last.rank];
    for (const Entered& one : entered) {
      group.ranks[one.rank].waits.push_back({one.call.begin, std::min(last.call.begin, one.call.end)});
    }
  }
  for (const auto& [rank, times] : last_times) {
    if (times <= split.last_times) continue;
    split.last_rank = rank;
    split.last_times = times;
  }
}

// Joins intervals that overlap: calls of two tracks may wait at the same time.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> joined;
  for (const Interval& some : intervals) {
    if (!joined.empty() && some.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, some.end);
    } else {
      joined.push_back(some);
    }
  }
  return joined;
}

void AddPhases(const Interval& window, const RankEvents& rank, StepSplit& split) {
  const std::vector<Interval> waits = Union(rank.waits);
  auto wait = waits.begin();
  for (const PlacedEvent* placed : rank.phases) {
    const Interval phase = Overlap(IntervalOf(*placed), window);
    const int64_t length = Length(phase);
    if (length == 0) continue;
    if (placed->event->phase() == Phase::COMPUTE) split.compute_ns += length;
    if (placed->event->phase() == Phase::EXCHANGE) split.exchange_ns += length;
    if (placed->event->phase() != Phase::COLLECTIVE) continue;
    // Phases ascend, so a wait that ends before this one lies before all that follow.
    while (wait != waits.end() && wait->end <= phase.begin) ++wait;
    int64_t waited = 0;
    for (auto each = wait; each != waits.end() && each->begin < phase.end; ++each)
      waited += Length(Overlap(*each, phase));
    split.waiting_ns += waited;
    split.collective_ns += length - waited;
  }
}

}  // namespace

double StepSplit::ShareOf(int64_t part_ns) const {
  return total_ns() == 0 ? 0 : static_cast<double>(part_ns) / static_cast<double>(total_ns());
}

double StepSplit::LastShare() const {
  return collectives == 0 ? 0 : static_cast<double>(last_times) / static_cast<double>(collectives);
}

std::vector<StepSplit> SplitSteps(absl::Span<const v1::ReadProfileResponse> ranks) {
  const CommonClock clock = PlaceEvents(ranks);
  std::vector<StepSplit> splits;
  for (auto& [number, group] : ByGroup(clock)) {
    const Interval window = WindowOf(group);
    if (Length(window) == 0) continue;
    StepSplit split;
    split.group = number;
    split.ranks = static_cast<uint32_t>(group.ranks.size());
    split.window_ns = Length(window);
    AddWaits(window, group, split);
    for (const auto& [rank, events] : group.ranks) AddPhases(window, events, split);
    splits.push_back(split);
  }
  return splits;
}

ordered_json StepSplitToJson(const std::vector<StepSplit>& groups) {
  ordered_json rows = ordered_json::array();
  for (const StepSplit& split : groups) {
    rows.push_back({{"group", split.group},
                    {"ranks", split.ranks},
                    {"seconds", static_cast<double>(split.window_ns) / 1e9},
                    {"compute_share", split.ShareOf(split.compute_ns)},
                    {"waiting_share", split.ShareOf(split.waiting_ns)},
                    {"collective_share", split.ShareOf(split.collective_ns)},
                    {"exchange_share", split.ShareOf(split.exchange_ns)},
                    {"collectives", split.collectives},
                    {"last_rank", split.last_rank},
                    {"last_share", split.LastShare()}});
  }
  return rows;
}

std::vector<ServerCores> CoresOfServers(const v1::JobStatus& job, const v1::ListNodesResponse& nodes) {
  std::vector<ServerCores> servers;
  for (const std::string& address : job.servers()) {
    for (const v1::NodeStatus& node : nodes.nodes()) {
      if (node.kind() == v1::NodeStatus::SERVER && node.name() == address && node.alive()) {
        servers.push_back({address, node.cores()});
        break;
      }
    }
  }
  return servers;
}

ordered_json ServerCoresToJson(const std::vector<ServerCores>& servers) {
  ordered_json rows = ordered_json::array();
  for (const ServerCores& server : servers) rows.push_back({{"address", server.address}, {"cores", server.cores}});
  return rows;
}

}  // namespace hooke
