#ifndef HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
#define HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_

#include "absl/time/time.h"

namespace hooke {

// The clock of all deadlines: absl::Now() at the first call in this process, plus the time that has passed since.
// Setting the machine's clock does not move it: otherwise a clock set forward by half a minute would end every group on
// the machine. Any thread may call it; it takes some tens of nanoseconds.
absl::Time SteadyNow();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
