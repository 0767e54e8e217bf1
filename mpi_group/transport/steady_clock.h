#ifndef HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
#define HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_

#include "absl/time/time.h"

namespace hooke {

// The clock of all deadlines: absl::Now() at the first call in this process, plus the time that has passed since.
// Setting the machine's clock does not move it: otherwise a clock set forward by half a minute would end every group on
// the machine. Any thread may call it; it takes some tens of nanoseconds.
//
// SteadyTime() (clocks/steady_time.h) has another zero point, so a time of one clock means nothing on the other. A
// deadline for mpi_group/ is a SteadyNow() everywhere.
absl::Time SteadyNow();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_STEADY_CLOCK_H_
