#ifndef HOOKE_MPI_GROUP_CUDA_AGREE_ON_STATUS_H_
#define HOOKE_MPI_GROUP_CUDA_AGREE_ON_STATUS_H_

#include "absl/status/status.h"
#include "mpi_group/group.h"

namespace hooke {

// Tells all ranks whether one of them has failed, and why. Collective; each rank passes its own status. OK on all ranks
// if all passed OK. Otherwise a rank that failed gets its own status back. The others get the code and the first words
// of the highest such rank, as "rank 3: ...". If the call itself fails, a rank that passed OK gets that error.
absl::Status AgreeOnStatus(Group& group, const absl::Status& own);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_AGREE_ON_STATUS_H_
