#include "algorithms/roster.h"

#include <algorithm>
#include <limits>

namespace hooke {

void Roster::ExpectAll() {
  for (Member& member : members_) member.awaited = true;
}

void Roster::Enter(uint32_t group, uint64_t steps) {
  constexpr uint64_t kNobody = std::numeric_limits<uint64_t>::max();
  uint64_t slowest = kNobody;
  for (uint32_t other = 0; other < groups(); ++other) {
    const Member& member = members_[other];
    if (other != group && member.awaited) slowest = std::min(slowest, member.steps + member.head_start);
  }
  const bool behind = slowest != kNobody && slowest > steps;
  members_[group] = {true, steps, behind ? slowest - steps : 0};
}

void Roster::End(uint32_t group) {
  Dismiss(group);
  members_[group].ended = true;
}

uint32_t Roster::remaining() const {
  return static_cast<uint32_t>(
      std::count_if(members_.begin(), members_.end(), [](const Member& member) { return !member.ended; }));
}

void Roster::Speak(uint32_t group, uint64_t steps) {
  Member& member = members_[group];
  if (!member.awaited) return Enter(group, steps);
  member.steps = std::max(member.steps, steps);
}

std::vector<uint32_t> Roster::Behind(uint32_t group, uint64_t bound,
                                     absl::FunctionRef<uint64_t(uint32_t group)> steps_of) const {
  const uint64_t mine = steps_of(group) + members_[group].head_start;
  std::vector<uint32_t> behind;
  for (uint32_t other = 0; other < groups(); ++other) {
    if (other == group || !members_[other].awaited) continue;
    if (steps_of(other) + members_[other].head_start + bound < mine) behind.push_back(other);
  }
  return behind;
}

}  // namespace hooke
