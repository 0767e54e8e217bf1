#ifndef HOOKE_WORKER_RANK_RANK_TASK_H_
#define HOOKE_WORKER_RANK_RANK_TASK_H_

// The work of a rank process, from its GroupStart to its end. It checks the start, loads the data, builds the model in
// the arena, and trains or evaluates. This is the main header of the folder. main.cc calls RunRankTask under MPI, and
// tests call it from threads.

#include "absl/status/statusor.h"
#include "mpi_group/group.h"
#include "proto/worker.pb.h"
#include "worker/exchange/server_calls.h"
#include "worker/report/reporter.h"

namespace hooke {

struct RankTask {
  v1::GroupStart start;
  // The group, whose deadline must be StartTimeout(start) (job_training.h) when the call begins. It outlives the call.
  // After an error it may be unusable.
  Group* group = nullptr;
  Reporter* reporter = nullptr;  // Outlives the call.
  ServerDialer dial;
  int threads = 1;  // Threads of the model's kernels in each rank.
};

// Collective over the group. Returns the steps done by the group; for an evaluation, the steps of the whole training.
// The caller reports Done or Failed. INVALID_ARGUMENT: the job has a command, or the images do not suit the model.
// Other errors are those of the group, of CheckStart, and of loading the data, making the model, training and
// evaluating.
absl::StatusOr<uint64_t> RunRankTask(const RankTask& task);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_RANK_TASK_H_
