#ifndef HOOKE_SERVER_PARAMETERS_TEST_ROUNDS_H_
#define HOOKE_SERVER_PARAMETERS_TEST_ROUNDS_H_

// A small job whose groups wait for each other, for tests of shards: in rounds, or because of a bound on staleness.

#include <cstdint>
#include <memory>

#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

constexpr double kRoundsRate = 0.5;  // The job's learning rate.

// Returns a request for a job with blocks of four values. With the default of 10 values, the blocks have 4, 4 and 2.
// The last value is a buffer. Plain SGD steps the center. The grace window is 10 s. Under rule SSP the bound on
// staleness is 2.
v1::AttachRequest MakeRoundsRequest(v1::AveragingSpec::Rule rule, uint32_t groups, uint64_t values = 10);

// Makes a shard with the values 0, 1/8, 2/8, ... The first `groups` groups have attached to it.
std::unique_ptr<Shard> MakeRoundsShard(const v1::AttachRequest& request, uint32_t groups,
                                       std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());
// Makes a shard with the same values, to which all groups of the job have attached.
std::unique_ptr<Shard> MakeRoundsShard(const v1::AttachRequest& request);

float FirstValue(const Shard& shard);

// Makes one exchange of a block of a shard that MakeRoundsShard made. Fails the test unless the exchange is OK and in
// time.
void SendBlock(Shard& shard, uint32_t group, uint64_t sequence, uint64_t block);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_ROUNDS_H_
