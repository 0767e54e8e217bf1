#ifndef HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_
#define HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_

// The part of a job's description that a group sends to the servers, so that they can step the center. Pure.

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Numbers that come from the data and the model, not from the job file.
struct ShardJobNumbers {
  uint64_t steps_per_epoch = 1;
  uint64_t parameters = 0;
};

// Returns that part. Leaves shard_index, shard_count and job_key unset. The values of `job` must be in range.
v1::JobSpecForShard ShardJob(const v1::JobSpec& job, const ShardJobNumbers& numbers);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_
