#include "algorithms/roster.h"

#include <algorithm>
#include <limits>

namespace hooke {

void Roster::ExpectAll() {
  for (Seat& seat : seats_) seat.awaited = true;
}

void Roster::Enter(uint32_t group, uint64_t steps) {
  constexpr uint64_t kNobody = std::numeric_limits<uint64_t>::max();
  uint64_t slowest = kNobody;
  for (uint32_t other = 0; other < groups(); ++other) {
    const Seat& seat = seats_[other];
    if (other != group && seat.awaited) slowest = std::min(slowest, seat.steps + seat.head_start);
  }
  const bool behind = slowest != kNobody && slowest > steps;
  seats_[group] = {true, steps, behind ? slowest - steps : 0};
}

void Roster::End(uint32_t group) {
  Dismiss(group);
  seats_[group].ended = true;
}

uint32_t Roster::remaining() const {
  return static_cast<uint32_t>(
      std::count_if(seats_.begin(), seats_.end(), [](const Seat& seat) { return !seat.ended; }));
}

void Roster::Speak(uint32_t group, uint64_t steps) {
  Seat& seat = seats_[group];
  if (!seat.awaited) return Enter(group, steps);
  seat.steps = std::max(seat.steps, steps);
}

std::vector<uint32_t> Roster::Behind(uint32_t group, uint64_t bound,
                                     absl::FunctionRef<uint64_t(uint32_t group)> steps_of) const {
  const uint64_t mine = steps_of(group) + seats_[group].head_start;
  std::vector<uint32_t> behind;
  for (uint32_t other = 0; other < groups(); ++other) {
    if (other == group || !seats_[other].awaited) continue;
    if (steps_of(other) + seats_[other].head_start + bound < mine) behind.push_back(other);
  }
  return behind;
}

}  // namespace hooke
