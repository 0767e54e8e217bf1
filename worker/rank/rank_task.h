#ifndef HOOKE_WORKER_RANK_RANK_TASK_H_
#define HOOKE_WORKER_RANK_RANK_TASK_H_

// The work of a rank process, from its GroupStart to its end. It checks the start, loads the data, builds the model in
// the arena, and trains or evaluates. The main header of the folder: main.cc calls it under MPI, tests from threads.

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

// Collective over the group. Returns the steps done by the group; the caller reports Done or Failed. Errors are those
// of CheckStart, of IdxDataset::Load, MakeModel, Sampler::Make and Trainer::Run.
absl::StatusOr<uint64_t> RunRankTask(const RankTask& task);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_RANK_TASK_H_
