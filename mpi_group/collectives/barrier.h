#ifndef HOOKE_MPI_GROUP_COLLECTIVES_BARRIER_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_BARRIER_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Returns OK after all ranks have called it (Hensgen, Finkel and Manber's dissemination barrier, 1988): ceil(log2 n)
// steps; each rank sends one byte in each.
absl::Status DisseminationBarrier(Transport& transport, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_BARRIER_H_
