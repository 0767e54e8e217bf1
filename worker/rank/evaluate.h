#ifndef HOOKE_WORKER_RANK_EVALUATE_H_
#define HOOKE_WORKER_RANK_EVALUATE_H_

// Evaluates the values in the arena on the test samples. Each rank of the group takes a part of the samples.

#include <cstdint>

#include "absl/status/statusor.h"
#include "mpi_group/group.h"
#include "proto/worker.pb.h"
#include "worker/data/samples.h"
#include "worker/model/model.h"

namespace hooke {

// Collective. All ranks hold the same values and get the same result. Errors are the model's or the group's.
absl::StatusOr<Evaluation> EvaluateInGroup(Group& group, Model& model, const Samples& test);

// The event with which the group reports the result.
v1::CenterEvaluated EvaluatedMessage(const Evaluation& result, uint64_t step, double epoch);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_EVALUATE_H_
