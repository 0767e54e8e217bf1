#ifndef HOOKE_ALGORITHMS_ROSTER_H_
#define HOOKE_ALGORITHMS_ROSTER_H_

// Which groups of a job the others wait for, and how many steps each has made.
//
// A group is awaited once it attaches or exchanges, or from the start if all are expected. It no longer is after
// somebody has waited for it in vain, until it exchanges again. So a dead or hung group costs the others one wait, not
// one per exchange.
//
// Pure: knows no threads or clocks.

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace hooke {

class Roster {
 public:
  explicit Roster(uint32_t groups) : members_(groups) {}

  // Awaits every group from now on, even before it has come. For jobs whose first round needs all groups.
  void ExpectAll();

  // A group begins, or begins again, at `steps` of its own, and is awaited. If it is behind all others it gets the
  // difference as a head start, so that nobody waits for it to catch up.
  void Enter(uint32_t group, uint64_t steps);
  // The group exchanges after `steps` steps of its own. The same as Enter if it was not awaited.
  void Speak(uint32_t group, uint64_t steps);
  // Somebody has waited for the group in vain.
  void Dismiss(uint32_t group) { members_[group].awaited = false; }
  // The group has sent its last contribution, unless Enter or Speak is called for it again.
  void End(uint32_t group);

  bool Awaits(uint32_t group) const { return members_[group].awaited; }
  // The number of groups that have not ended.
  uint32_t remaining() const;
  uint32_t groups() const { return static_cast<uint32_t>(members_.size()); }

  // The awaited groups that are more than `bound` steps behind `group`, ascending. `steps_of` returns a group's steps;
  // its head start is added.
  std::vector<uint32_t> Behind(uint32_t group, uint64_t bound,
                               absl::FunctionRef<uint64_t(uint32_t group)> steps_of) const;

 private:
  struct Member {
    bool awaited = false;
    uint64_t steps = 0;  // Steps by its last report.
    uint64_t head_start = 0;
    bool ended = false;  // An ended group is not awaited.
  };

  std::vector<Member> members_;
};

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_ROSTER_H_
