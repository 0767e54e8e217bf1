#ifndef HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_
#define HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_

// The part of a job's description that a group sends to the servers, so that they can step the center. Pure.

#include <cstdint>
#include <optional>

#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Numbers that come from the data and the model, not from the job file.
struct ShardJobNumbers {
  uint64_t steps_per_epoch = 1;  // 0: not known, which is allowed if `steps_total` is set and CountsEpochs is false.
  uint64_t parameters = 0;
  // Steps of a group's whole training, in all generations; 0: not known. Unset: train.epochs epochs.
  std::optional<uint64_t> steps_total = std::nullopt;
  // As JobSpecForShard has them.
  uint32_t first_incarnation = 0;
  uint64_t first_step = 0;
  double first_epoch = 0;
};

// Returns whether the rate with which the servers step depends on the epoch.
bool CountsEpochs(const v1::JobSpec& job);

// Returns what `job` says to the servers. `epochs` and `steps_per_epoch` tell the servers a group's last step. If the
// length is not known and the rate constant, no step is the last one. If CountsEpochs, `epochs` is also the schedule's
// length, so it is at least train.epochs. Leaves shard_index, shard_count and job_key unset. The values of `job` must
// be in range.
v1::JobSpecForShard ShardJob(const v1::JobSpec& job, const ShardJobNumbers& numbers);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_
