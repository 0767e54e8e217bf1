#include "algorithms/roster.h"

#include <algorithm>
#include <limits>

namespace hooke {

void Roster::ExpectAll() {
  for (uint32_t group = 0; group < groups(); ++group) SetAwaited(group, true);
}

void Roster::Enter(uint32_t group, uint64_t steps) {
  constexpr uint64_t kNobody = std::numeric_limits<uint64_t>::max();
  uint64_t slowest = kNobody;
  for (uint32_t other = 0; other < groups(); ++other) {
    const Member& member = members_[other];
    if (other != group && member.awaited) slowest = std::min(slowest, member.steps + member.head_start);
  }
  const bool behind = slowest != kNobody && slowest > steps;
  SetAwaited(group, true);
  SetEnded(group, false);
  members_[group].steps = steps;
  members_[group].head_start = behind ? slowest - steps : 0;
}

void Roster::End(uint32_t group) {
  Dismiss(group);
  SetEnded(group, true);
}

void Roster::SetAwaited(uint32_t group, bool awaited) {
  if (members_[group].awaited == awaited) return;
  members_[group].awaited = awaited;
  awaited_ += awaited ? 1 : -1;
  ++changes_;
}

void Roster::SetEnded(uint32_t group, bool ended) {
  if (members_[group].ended == ended) return;
  members_[group].ended = ended;
  ended_ += ended ? 1 : -1;
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
