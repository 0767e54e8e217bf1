#ifndef HOOKE_WORKER_RANK_EVALUATE_H_
#define HOOKE_WORKER_RANK_EVALUATE_H_

// How good the values in the arena are on the test samples, which the ranks of the group share out among themselves.

#include <cstdint>

#include "absl/status/statusor.h"
#include "mpi_group/group.h"
#include "proto/worker.pb.h"
#include "worker/data/samples.h"
#include "worker/model/model.h"

namespace hooke {

// Collective; all ranks hold the same values and get the same result. Errors are the model's or the group's.
absl::StatusOr<Evaluation> EvaluateInGroup(Group& group, Model& model, const Samples& test);

// What the group reports of it.
v1::CenterEvaluated EvaluatedMessage(const Evaluation& result, uint64_t step, double epoch);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_EVALUATE_H_
