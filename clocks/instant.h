#ifndef HOOKE_CLOCKS_INSTANT_H_
#define HOOKE_CLOCKS_INSTANT_H_

// One moment as two clocks show it. Somebody may set the wall clock at any time; the steady clock only grows. So texts
// and records use the wall clock. Leases, back-offs and limits for silent nodes use the steady clock.

#include "absl/time/time.h"

namespace hooke {

struct Instant {
  absl::Time wall;
  absl::Duration steady;  // Since an arbitrary moment, the same one for the life of the process.

  Instant& operator+=(absl::Duration passed) {
    wall += passed;
    steady += passed;
    return *this;
  }
  friend Instant operator+(Instant from, absl::Duration passed) { return from += passed; }
};

// Reads the clocks of this machine.
Instant InstantNow();

}  // namespace hooke

#endif  // HOOKE_CLOCKS_INSTANT_H_
