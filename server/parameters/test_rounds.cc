#include "server/parameters/test_rounds.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {

v1::AttachRequest MakeRoundsRequest(v1::AveragingSpec::Rule rule, uint32_t groups, uint64_t values) {
  TestCenter center;
  center.groups = groups;
  center.values = values;
  v1::AttachRequest request = MakeStepRequest(center, rule, kRoundsRate);
  v1::JobSpecForShard& job = *request.mutable_job();
  job.set_steps_per_epoch(10);
  job.set_parameters(values - 1);
  job.set_grace_seconds(10);
  if (rule == v1::AveragingSpec::SSP) job.set_staleness_bound(2);
  return request;
}

std::unique_ptr<Shard> MakeRoundsShard(const v1::AttachRequest& request, uint32_t groups,
                                       std::shared_ptr<WaitClock> clock) {
  return MakeTestShard(request, Ramp(0, request.job().parameters() + 1), groups, std::move(clock));
}

std::unique_ptr<Shard> MakeRoundsShard(const v1::AttachRequest& request) {
  return MakeRoundsShard(request, request.job().groups());
}

float FirstValue(const Shard& shard) { return shard.CopyBlock(0).values[0]; }

void SendBlock(Shard& shard, uint32_t group, uint64_t sequence, uint64_t block) {
  const Range range = shard.BlockRange(block);
  const std::vector<float> values(range.size(), 1);
  std::vector<float> answer(range.size());
  const absl::Time begin = absl::Now();
  EXPECT_EQ(shard.ApplyBlock({{group, 0, 1}, sequence, range.begin}, values, absl::MakeSpan(answer)), absl::OkStatus())
      << group << " " << sequence << " " << block;
  EXPECT_LT(absl::Now() - begin, absl::Seconds(8))
      << "the grace window of 10 s was waited for: group " << group << ", exchange " << sequence << ", block " << block;
}

}  // namespace hooke
