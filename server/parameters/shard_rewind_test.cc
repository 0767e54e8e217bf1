// A job's only group writes the center back after a restart (Shard::Rewind).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;

constexpr absl::Time kNow = absl::UnixEpoch();

// Makes a shard with a center of two blocks, for a job of `groups` groups. Group 0 has attached and initialized it.
std::unique_ptr<Shard> MakeShard(uint32_t groups = 1, v1::AveragingSpec::Rule rule = v1::AveragingSpec::AVERAGE) {
  TestCenter center;
  center.values = 4;
  center.groups = groups;
  auto shard = Shard::Create(PlanShard(MakeStepRequest(center, rule, 1), 2).value()).value();
  EXPECT_TRUE(shard->Attach(kNow, {}, absl::Seconds(20)).ok());
  EXPECT_TRUE(shard->WriteInitial(kNow, {}, 0, {1.0f, 2.0f}).ok());
  EXPECT_TRUE(shard->WriteInitial(kNow, {}, 2, {3.0f, 4.0f}).ok());
  EXPECT_TRUE(shard->CompleteInitialize({}).ok());
  return shard;
}

absl::Status Exchange(Shard& shard, uint32_t incarnation, uint64_t sequence, uint64_t first) {
  std::vector<float> answer(2);
  return shard.ApplyBlock({{0, 0, incarnation}, sequence, first}, {0.5f, 0.5f}, absl::MakeSpan(answer));
}

// After a restart the group writes all blocks back, and may do so twice. It goes on from there.
TEST(ShardRewind, ReplacesValuesAndSequences) {
  const auto shard = MakeShard();
  ASSERT_TRUE(Exchange(*shard, 1, 6, 0).ok());
  ASSERT_TRUE(shard->Attach(kNow, {0, 0, 2}, absl::Seconds(20)).ok());
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(shard->Rewind({{0, 0, 2}, 3, 0}, {1.5f, 2.5f}).ok());
    ASSERT_TRUE(shard->Rewind({{0, 0, 2}, 3, 2}, {3.5f, 4.5f}).ok());
  }
  EXPECT_THAT(shard->CopyBlock(0).values, ElementsAre(1.5f, 2.5f));
  EXPECT_EQ(shard->Attach(kNow, {0, 0, 2}, absl::Seconds(20))->last_sequence, 3u);
  EXPECT_TRUE(Exchange(*shard, 2, 6, 0).ok()) << "the step is exchanged anew";
  EXPECT_THAT(shard->CopyBlock(0).values, ElementsAre(1.0f, 2.0f));
}

// After the group has gone on, a late message of the rewind changes nothing. Nor does a late message of the earlier
// start.
TEST(ShardRewind, RefusesLateMessages) {
  const auto shard = MakeShard();
  ASSERT_TRUE(shard->Attach(kNow, {0, 0, 2}, absl::Seconds(20)).ok());
  ASSERT_TRUE(shard->Rewind({{0, 0, 2}, 3, 0}, {1.5f, 2.5f}).ok());
  EXPECT_EQ(Exchange(*shard, 1, 6, 0).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(shard->Rewind({{0, 0, 1}, 3, 0}, {0, 0}).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(Exchange(*shard, 2, 6, 0).ok());
  EXPECT_EQ(shard->Rewind({{0, 0, 2}, 3, 0}, {1.5f, 2.5f}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(shard->CopyBlock(0).values, ElementsAre(1.0f, 2.0f));
  EXPECT_EQ(shard->Rewind({{0, 0, 3}, 3, 0}, {1.5f, 2.5f}).code(), absl::StatusCode::kNotFound) << "attach first";
}

// A group may rewind the center only if it is the job's only group.
TEST(ShardRewind, IsForOneGroupOnly) {
  EXPECT_TRUE(MakeShard()->MayRewind());
  EXPECT_FALSE(MakeShard(2)->MayRewind());
}

// Rewind refuses an infinite value, and values that do not begin at a block's first value.
TEST(ShardRewind, RefusesInfinity) {
  const auto shard = MakeShard();
  EXPECT_EQ(shard->Rewind({{}, 3, 0}, {1.0f, INFINITY}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(shard->Rewind({{}, 3, 1}, {1.0f, 2.0f}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
