#ifndef HOOKE_WORKER_RANK_GROUP_DATASET_H_
#define HOOKE_WORKER_RANK_GROUP_DATASET_H_

// How the ranks of a group come to have the same image set: rank 0 reads and unpacks the files, the others get copies
// of it. So a compressed file is unpacked once, and not by every rank on the cores that they share.

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "worker/data/idx_dataset.h"

namespace hooke {

// Collective; only rank 0 looks at `options`. Returns the set on all ranks, or the error of IdxDataset::Load on all, or
// the group's. Reading may take longer than `collective_timeout`, which bounds what the group lets one collective take.
absl::StatusOr<IdxDataset> LoadInGroup(Group& group, const IdxOptions& options, absl::Duration collective_timeout);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_GROUP_DATASET_H_
