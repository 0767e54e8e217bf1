#ifndef HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
#define HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_

#include "absl/time/time.h"

namespace hooke {

// What deadlines are measured with: absl::Now() of the first call in this process, and from there on the time that
// passes, whatever anybody does to the machine's clock. A clock that is set half a minute forward must not end every
// group of the machine. Any thread; some tens of nanoseconds.
absl::Time SteadyNow();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
