#ifndef HOOKE_CLOCKS_TEST_WALL_CLOCK_H_
#define HOOKE_CLOCKS_TEST_WALL_CLOCK_H_

// For tests: sets the machine's clock, as this process alone sees it. It replaces the function through which the C++
// libraries read clocks. The kernel's own waits are not changed.

#include "absl/time/time.h"

namespace hooke {

// Sets the clock forward by `by`; back if that is negative. Thread-safe.
void StepWallClock(absl::Duration by);

}  // namespace hooke

#endif  // HOOKE_CLOCKS_TEST_WALL_CLOCK_H_
