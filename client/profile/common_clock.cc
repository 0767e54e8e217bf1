#include "client/profile/common_clock.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Returns the name of a rank's machine. A rank whose machine has no name counts as a machine of its own.
std::string MachineOf(const v1::ReadProfileResponse& rank) {
  if (!rank.profile().machine().empty()) return rank.profile().machine();
  return absl::StrCat("rank ", rank.group(), "/", rank.rank());
}

// For each machine, the offset with the smallest error.
using Clocks = std::map<std::string, std::optional<v1::ClockOffset>>;
Clocks OffsetsOf(absl::Span<const v1::ReadProfileResponse> ranks) {
  Clocks clocks;
  for (const v1::ReadProfileResponse& rank : ranks) {
    std::optional<v1::ClockOffset>& best = clocks[MachineOf(rank)];
    const v1::RankProfile& profile = rank.profile();
    if (!profile.has_clock() || profile.clock().error_ns() < 0) continue;
    if (!best.has_value() || profile.clock().error_ns() < best->error_ns()) best = profile.clock();
  }
  return clocks;
}

// Returns how far two machines may be apart: at most the sum of the two largest errors.
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

std::vector<PlacedEvent> Place(absl::Span<const v1::ReadProfileResponse> ranks, const Clocks& clocks) {
  std::vector<PlacedEvent> placed;
  for (const v1::ReadProfileResponse& rank : ranks) {
    const std::optional<v1::ClockOffset>& clock = clocks.at(MachineOf(rank));
    if (!clock.has_value()) continue;
    for (const v1::TraceEvent& event : rank.profile().events()) {
      // Unsigned, because a peer's numbers may overflow.
      const uint64_t begin = event.begin_ns() + static_cast<uint64_t>(clock->offset_ns());
      placed.push_back({rank.group(), rank.rank(), event.track(), static_cast<int64_t>(begin), &event});
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const PlacedEvent& a, const PlacedEvent& b) {
    return std::tie(a.group, a.rank, a.track, a.begin_ns) < std::tie(b.group, b.rank, b.track, b.begin_ns);
  });
  return placed;
}

}  // namespace

CommonClock PlaceEvents(absl::Span<const v1::ReadProfileResponse> ranks) {
  Clocks clocks = OffsetsOf(ranks);
  CommonClock common;
  if (clocks.size() == 1 && !clocks.begin()->second.has_value()) {
    // A single machine needs no offset.
    clocks.begin()->second.emplace();
    common.is_unix = false;
  }
  common.events = Place(ranks, clocks);
  common.machines = static_cast<uint32_t>(clocks.size());
  common.error_ns = ErrorOf(clocks);
  for (const v1::ReadProfileResponse& rank : ranks) {
    ++(clocks.at(MachineOf(rank)).has_value() ? common.ranks : common.ranks_left_out);
  }
  return common;
}

}  // namespace hooke
