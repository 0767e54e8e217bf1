#ifndef HOOKE_MPI_GROUP_COLLECTIVES_BARRIER_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_BARRIER_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// The dissemination barrier (Hensgen, Finkel and Manber, 1988). Returns OK after all ranks have called it. ceil(log2 n)
// steps; each rank sends one byte per step.
absl::Status DisseminationBarrier(Transport& transport, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_BARRIER_H_
