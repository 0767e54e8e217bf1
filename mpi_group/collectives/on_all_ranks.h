#ifndef HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_

// How ranks agree on whether to go on. Used while a group is set up, before there is anything quicker.

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Whether `flag` is set on all ranks: the same answer on each. Collective. The transport's errors.
absl::StatusOr<bool> OnAllRanks(Transport& transport, bool flag, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_
