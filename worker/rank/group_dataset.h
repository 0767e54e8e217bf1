#ifndef HOOKE_WORKER_RANK_GROUP_DATASET_H_
#define HOOKE_WORKER_RANK_GROUP_DATASET_H_

// Gives all ranks of a group the same image set. Rank 0 reads and unpacks the files, and the others get copies from it.
// So a compressed file is unpacked once, not by every rank on the cores that they share.

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "worker/data/idx_dataset.h"

namespace hooke {

// Collective; only rank 0 looks at `options`. Returns the set on all ranks. An error of IdxDataset::Load comes on all
// ranks, too; other errors are the group's. Reading may take longer than `collective_timeout`, the limit of one
// collective.
absl::StatusOr<IdxDataset> LoadInGroup(Group& group, const IdxOptions& options, absl::Duration collective_timeout);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_GROUP_DATASET_H_
