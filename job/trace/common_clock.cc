#include "job/trace/common_clock.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr int64_t kTimeMax = std::numeric_limits<int64_t>::max();

// Returns the name of a rank's machine. A rank whose machine has no name counts as a machine of its own.
std::string MachineOf(const v1::ReadProfileResponse& rank) {
  if (!rank.profile().machine().empty()) return rank.profile().machine();
  return absl::StrCat("rank ", rank.group(), "/", rank.rank());
}

// Returns the name of the machine of a server that has answered. Without a name it counts as a machine of its own.
std::string MachineOf(const ExchangesOfServer& server) {
  return server.answer->machine().empty() ? absl::StrCat("server ", server.address) : server.answer->machine();
}

bool HasExchanges(const ExchangesOfServer& server) { return server.answer.ok() && !server.answer->exchanges().empty(); }

// For each machine, the offset with the smallest error.
using Clocks = std::map<std::string, std::optional<v1::ClockOffset>>;

void AddClock(bool is_known, const v1::ClockOffset& clock, std::optional<v1::ClockOffset>& best) {
  if (!is_known || clock.error_ns() < 0) return;
  if (!best.has_value() || clock.error_ns() < best->error_ns()) best = clock;
}

Clocks OffsetsOf(absl::Span<const v1::ReadProfileResponse> ranks, absl::Span<const ExchangesOfServer> servers) {
  Clocks clocks;
  for (const v1::ReadProfileResponse& rank : ranks) {
    AddClock(rank.profile().has_clock(), rank.profile().clock(), clocks[MachineOf(rank)]);
  }
  for (const ExchangesOfServer& server : servers) {
    if (HasExchanges(server)) AddClock(server.answer->has_clock(), server.answer->clock(), clocks[MachineOf(server)]);
  }
  return clocks;
}

// Returns the machine on which all ranks are; nullopt if there are several.
std::optional<std::string> OnlyMachineOf(absl::Span<const v1::ReadProfileResponse> ranks) {
  std::set<std::string> machines;
  for (const v1::ReadProfileResponse& rank : ranks) machines.insert(MachineOf(rank));
  return machines.size() == 1 ? std::make_optional(*machines.begin()) : std::nullopt;
}

// Returns how far two machines may be apart: at most the sum of the two largest errors.
int64_t ErrorOf(const Clocks& clocks) {
  std::vector<int64_t> errors;
  for (const auto& [machine, clock] : clocks) {
    if (clock.has_value()) errors.push_back(clock->error_ns());
  }
  if (errors.size() < 2) return 0;
  std::sort(errors.rbegin(), errors.rend());
  return errors[1] > kTimeMax - errors[0] ? kTimeMax : errors[0] + errors[1];
}

// Unsigned on the way, because a peer's numbers may overflow.
int64_t Moved(uint64_t at_ns, const v1::ClockOffset& clock) {
  return static_cast<int64_t>(at_ns + static_cast<uint64_t>(clock.offset_ns()));
}

std::vector<PlacedEvent> Place(absl::Span<const v1::ReadProfileResponse> ranks, const Clocks& clocks) {
  std::vector<PlacedEvent> placed;
  for (const v1::ReadProfileResponse& rank : ranks) {
    const std::optional<v1::ClockOffset>& clock = clocks.at(MachineOf(rank));
    if (!clock.has_value()) continue;
    for (const v1::TraceEvent& event : rank.profile().events()) {
      placed.push_back({rank.group(), rank.rank(), event.track(), Moved(event.begin_ns(), *clock), &event});
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const PlacedEvent& a, const PlacedEvent& b) {
    return std::tie(a.group, a.rank, a.track, a.begin_ns) < std::tie(b.group, b.rank, b.track, b.begin_ns);
  });
  return placed;
}

// Adds the exchanges that overlap the time of `common.events`, and the servers without any that do.
void PlaceExchanges(absl::Span<const ExchangesOfServer> servers, const Clocks& clocks, CommonClock& common) {
  int64_t first = kTimeMax;
  int64_t last = std::numeric_limits<int64_t>::min();
  for (const PlacedEvent& placed : common.events) {
    first = std::min(first, placed.begin_ns);
    last = std::max(last, EndOf(placed.begin_ns, placed.event->duration_ns()));
  }
  for (size_t i = 0; i < servers.size(); ++i) {
    if (!HasExchanges(servers[i])) continue;
    const auto clock = clocks.find(MachineOf(servers[i]));
    if (clock == clocks.end() || !clock->second.has_value()) {
      common.servers_left_out.push_back(i);
      continue;
    }
    const size_t before = common.exchanges.size();
    for (const v1::ServedExchange& exchange : servers[i].answer->exchanges()) {
      const int64_t begin = Moved(exchange.begin_ns(), *clock->second);
      if (begin > last || EndOf(begin, exchange.duration_ns()) < first) continue;
      common.exchanges.push_back({i, begin, &exchange});
    }
    if (common.exchanges.size() == before) common.servers_apart.push_back(i);
  }
  const auto key = [](const PlacedExchange& placed) {
    return std::make_tuple(placed.server, placed.exchange->group(), placed.exchange->rank(), placed.begin_ns);
  };
  std::stable_sort(common.exchanges.begin(), common.exchanges.end(),
                   [&key](const PlacedExchange& a, const PlacedExchange& b) { return key(a) < key(b); });
}

}  // namespace

int64_t EndOf(int64_t begin_ns, uint64_t duration_ns) {
  const uint64_t room = static_cast<uint64_t>(kTimeMax) - static_cast<uint64_t>(begin_ns);
  return duration_ns > room ? kTimeMax : static_cast<int64_t>(static_cast<uint64_t>(begin_ns) + duration_ns);
}

CommonClock PlaceEvents(absl::Span<const v1::ReadProfileResponse> ranks, absl::Span<const ExchangesOfServer> servers) {
  Clocks clocks = OffsetsOf(ranks, servers);
  CommonClock common;
  const std::optional<std::string> only = OnlyMachineOf(ranks);
  if (only.has_value() && !clocks.at(*only).has_value()) {
    // A single machine needs no offset. Servers on other machines are left out.
    clocks = {{*only, v1::ClockOffset()}};
    common.is_unix = false;
  }
  common.events = Place(ranks, clocks);
  PlaceExchanges(servers, clocks, common);
  common.machines = static_cast<uint32_t>(clocks.size());
  common.error_ns = ErrorOf(clocks);
  for (const v1::ReadProfileResponse& rank : ranks) {
    ++(clocks.at(MachineOf(rank)).has_value() ? common.ranks : common.ranks_left_out);
  }
  return common;
}

}  // namespace hooke
