#ifndef HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_
#define HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_

// What a group tells the servers of its job, so that they can step the center. Pure.

#include <cstdint>

#include "algorithms/compression.h"
#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// What follows from the data and the model.
struct ShardJobNumbers {
  uint64_t steps_per_epoch = 1;
  uint64_t parameters = 0;
};

// Without shard_index, shard_count and job_key. `job` is in range.
v1::JobSpecForShard ShardJob(const v1::JobSpec& job, const ShardJobNumbers& numbers);

// How such a group encodes what it sends; what the servers expect. `averaging` is in range.
Encoding ExchangeEncoding(const v1::AveragingSpec& averaging);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SHARD_JOB_H_
