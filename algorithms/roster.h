#ifndef HOOKE_ALGORITHMS_ROSTER_H_
#define HOOKE_ALGORITHMS_ROSTER_H_

// Which groups of a job the others wait for, and how far each is. A group is awaited from when it attaches or speaks,
// or from the start where all are expected. That ends when somebody has waited for it in vain; then nobody does, until
// it speaks again. So one that is dead or hangs costs the others one wait, not one at each exchange.
//
// Pure: knows no threads or clocks.

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace hooke {

class Roster {
 public:
  explicit Roster(uint32_t groups) : seats_(groups) {}

  // Every group is awaited from now on, before it has come: a job whose first round is to be of all its groups.
  void ExpectAll();

  // A group begins, or begins again, at this many steps of its own: it is awaited. One that is behind all others gets
  // the difference as a head start, so that nobody waits for it to catch up.
  void Enter(uint32_t group, uint64_t steps);
  // An exchange of a group that is awaited, or is again from now on.
  void Speak(uint32_t group, uint64_t steps);
  // It was waited for in vain.
  void Dismiss(uint32_t group) { seats_[group].awaited = false; }
  // It has sent all that it ever will, unless it enters or speaks again.
  void End(uint32_t group);

  bool Awaits(uint32_t group) const { return seats_[group].awaited; }
  // How many have not ended.
  uint32_t remaining() const;
  uint32_t groups() const { return static_cast<uint32_t>(seats_.size()); }

  // The awaited groups that are more than `bound` steps behind `group` by the steps that `steps_of` tells, head starts
  // counted, ascending.
  std::vector<uint32_t> Behind(uint32_t group, uint64_t bound,
                               absl::FunctionRef<uint64_t(uint32_t group)> steps_of) const;

 private:
  struct Seat {
    bool awaited = false;
    uint64_t steps = 0;  // As it last said.
    uint64_t head_start = 0;
    bool ended = false;  // And so not awaited.
  };

  std::vector<Seat> seats_;
};

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_ROSTER_H_
