#ifndef HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
#define HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_

#include "absl/time/time.h"

namespace hooke {

// The clock of all deadlines: the time of CLOCK_MONOTONIC, counted from 1970, as SteadyTime() in clocks/ does. Setting
// the machine's clock does not move it: otherwise a clock set forward by half a minute would end every group on the
// machine. Any thread may call it; it takes some tens of nanoseconds. A deadline is never made from absl::Now(), which
// is half a century later.
absl::Time SteadyNow();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
