#ifndef HOOKE_WORKER_RANK_RANK_TASK_H_
#define HOOKE_WORKER_RANK_RANK_TASK_H_

// The work of a rank process, from its GroupStart to its end. It checks the start, loads the data, builds the model in
// the arena, and trains or evaluates. The main header of the folder: main.cc calls it under MPI, tests from threads.

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "proto/worker.pb.h"
#include "worker/exchange/server_calls.h"
#include "worker/report/reporter.h"

namespace hooke {

// How long a collective may take while a group starts. Ranks do not start evenly: one may load its libraries from a
// cold disk, or share its node with other jobs. Once all ranks are ready to train, `collective_timeout_seconds` is the
// limit.
constexpr absl::Duration kStartTimeout = absl::Minutes(5);

// The limit of a group's collectives from the beginning of RunRankTask: kStartTimeout, or the collective timeout if
// that is longer.
absl::Duration StartTimeout(const v1::GroupStart& start);

struct RankTask {
  v1::GroupStart start;
  // The group, whose deadline must be StartTimeout(start) when the call begins. It outlives the call. After an error it
  // may be unusable.
  Group* group = nullptr;
  Reporter* reporter = nullptr;  // Outlives the call.
  ServerDialer dial;
  int threads = 1;  // Threads of the model's kernels in each rank.
};

// INVALID_ARGUMENT names the field that is out of range, and what is allowed. An unset field of the job counts as its
// default. The job must pass CheckJob (job/job_check.h). `ranks` is the group's size.
absl::Status CheckStart(const v1::GroupStart& start, int ranks);

// Collective over the group. Returns the steps done by the group; the caller reports Done or Failed. Errors are those
// of CheckStart, of IdxDataset::Load, MakeModel, Sampler::Make and Trainer::Run.
absl::StatusOr<uint64_t> RunRankTask(const RankTask& task);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_RANK_TASK_H_
