#ifndef HOOKE_ALGORITHMS_ROSTER_H_
#define HOOKE_ALGORITHMS_ROSTER_H_

// Records which groups of a job the others wait for, and how many steps each has made.
//
// A group is awaited once it attaches or exchanges, or from the start if ExpectAll was called. It is no longer awaited
// once somebody has waited for it in vain or it has ended, until it attaches or exchanges again. So a dead or hung
// group costs the others one wait, not one per exchange.
//
// Pure: knows no threads or clocks.

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace hooke {

class Roster {
 public:
  explicit Roster(uint32_t groups) : members_(groups) {}

  // From now on every group is awaited, even before its first message. Jobs whose first round needs all groups call
  // this.
  void ExpectAll();

  // Records that a group begins, or begins again, at `steps` steps of its own, and awaits it. If it is behind all other
  // awaited groups, the difference to the slowest of them is its head start, which is added to its steps from then on.
  // So no group waits for it to catch up.
  void Enter(uint32_t group, uint64_t steps);
  // Records that the group exchanges after `steps` steps of its own. If the group was not awaited, Speak does what
  // Enter does.
  void Speak(uint32_t group, uint64_t steps);
  // Stops awaiting the group, because somebody has waited for it in vain.
  void Dismiss(uint32_t group) { SetAwaited(group, false); }
  // Records that the group has sent its last contribution. A later Enter or Speak of the group undoes this.
  void End(uint32_t group);

  bool Awaits(uint32_t group) const { return members_[group].awaited; }
  // The number of groups that are awaited.
  uint32_t awaited() const { return awaited_; }
  // Grows with each change of who is awaited. A count of awaited groups holds until it grows.
  uint64_t changes() const { return changes_; }
  // The number of groups that have not ended.
  uint32_t remaining() const { return groups() - ended_; }
  uint32_t groups() const { return static_cast<uint32_t>(members_.size()); }

  // Returns the awaited groups that are more than `bound` steps behind `group`, ascending. `steps_of` returns a group's
  // own steps; Behind adds the group's head start.
  std::vector<uint32_t> Behind(uint32_t group, uint64_t bound,
                               absl::FunctionRef<uint64_t(uint32_t group)> steps_of) const;

 private:
  struct Member {
    bool awaited = false;
    uint64_t steps = 0;  // Steps by its last report.
    uint64_t head_start = 0;
    bool ended = false;  // An ended group is not awaited.
  };

  void SetAwaited(uint32_t group, bool awaited);
  void SetEnded(uint32_t group, bool ended);

  std::vector<Member> members_;
  uint32_t awaited_ = 0;
  uint32_t ended_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_ROSTER_H_
