#ifndef HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_

// A vote of all ranks on whether to go on, for the time before a group is set up and has quicker means.

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Returns true on all ranks if `flag` is true on all of them, else false on all. Collective. Errors are those of the
// transport.
absl::StatusOr<bool> OnAllRanks(Transport& transport, bool flag, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_
