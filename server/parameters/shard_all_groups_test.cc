// A shard's rounds in which all live groups must take part. Without a quorum every group of the job is awaited from the
// first round on. A group that is dead, late, or never comes costs the others one grace window.

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr double kRate = 0.5;
constexpr uint64_t kSteps = 40;
// A grace window that no thread may wait out. A test with it must take less than kAtOnce.
constexpr absl::Duration kLong = absl::Seconds(10);
constexpr absl::Duration kAtOnce = absl::Seconds(8);

// Returns a request for a job with one block of zeros. Plain SGD steps the block after each step of a group.
v1::AttachRequest Request(v1::AveragingSpec::Rule rule, uint32_t groups, absl::Duration grace) {
  TestCenter center;
  center.groups = groups;
  center.values = 4;
  v1::AttachRequest request = MakeStepRequest(center, rule, kRate);
  request.mutable_job()->set_steps_per_epoch(kSteps);
  request.mutable_job()->set_grace_seconds(absl::ToDoubleSeconds(grace));
  request.mutable_job()->clear_quorum();
  return request;
}

// Makes a shard to which the first `groups` groups have attached.
std::unique_ptr<Shard> MakeShard(const v1::AttachRequest& request, uint32_t groups) {
  return MakeTestShard(request, std::vector<float>(4), groups);
}

// Waits at most for `patience` until the shard has had `rounds` rounds. Returns whether it has.
bool HasHad(const Shard& shard, uint64_t rounds, absl::Duration patience) {
  const absl::Time give_up = absl::Now() + patience;
  while (shard.updates() < rounds && absl::Now() < give_up) absl::SleepFor(absl::Milliseconds(1));
  return shard.updates() >= rounds;
}

// A group that comes before the other makes no step alone. The first round has both groups and takes their mean.
TEST(ShardAllGroups, TheFirstRoundWaitsForGroupsThatHaveNotCome) {
  for (const auto rule : {v1::AveragingSpec::SYNC, v1::AveragingSpec::AVERAGE}) {
    const auto shard = MakeShard(Request(rule, 2, kLong), 1);
    absl::StatusOr<float> early = absl::UnknownError("");
    std::thread first([&] { early = Send(*shard, {0, 0, 1}, 1, 3); });
    EXPECT_FALSE(HasHad(*shard, 1, absl::Milliseconds(200))) << "it stepped alone";
    AttachGroup(*shard, 1);
    const absl::StatusOr<float> late = Send(*shard, {1, 0, 1}, 1, 1);
    first.join();
    EXPECT_EQ(early.value(), static_cast<float>(-2 * kRate));
    EXPECT_EQ(late.value(), static_cast<float>(-2 * kRate));
    EXPECT_EQ(shard->updates(), 1u);
  }
}

// The other groups wait once for a group that never comes. That group has trained nothing, so the distances of the
// others count in full.
TEST(ShardAllGroups, AGroupThatNeverComesCostsOneGraceWindow) {
  for (const auto rule : {v1::AveragingSpec::SYNC, v1::AveragingSpec::AVERAGE}) {
    const auto shard = MakeShard(Request(rule, 2, absl::Seconds(1)), 1);
    const absl::Time start = absl::Now();
    for (uint64_t sequence = 1; sequence <= 20; ++sequence) ASSERT_TRUE(Send(*shard, {0, 0, 1}, sequence, 1).ok());
    EXPECT_GE(absl::Now() - start, absl::Seconds(1));
    EXPECT_LT(absl::Now() - start, kAtOnce);
    EXPECT_FLOAT_EQ(shard->CopyBlock(0).values[0], -20 * kRate);
  }
}

// After a restart of the server, a group that never came costs the others one more grace window.
TEST(ShardAllGroups, AfterARestartAGroupThatNeverCameCostsOneMore) {
  const v1::AttachRequest request = Request(v1::AveragingSpec::AVERAGE, 2, absl::Seconds(1));
  const auto before = MakeShard(request, 1);
  ASSERT_TRUE(Send(*before, {0, 0, 1}, 1, 1).ok());
  const auto shard = Shard::Create(PlanShard(request, 4).value()).value();
  shard->RestoreBlock(0, before->CopyBlock(0));
  shard->RestoreState(before->CopyGroups(), before->updates());
  const absl::Time start = absl::Now();
  for (uint64_t sequence = 2; sequence <= 20; ++sequence) ASSERT_TRUE(Send(*shard, {0, 0, 1}, sequence, 1).ok());
  EXPECT_GE(absl::Now() - start, absl::Seconds(1));
  EXPECT_LT(absl::Now() - start, kAtOnce);
  EXPECT_FLOAT_EQ(shard->CopyBlock(0).values[0], -20 * kRate);
}

// A group that dies costs the others one grace window. When it is started again, it is awaited as before.
TEST(ShardAllGroups, AGroupThatIsStartedAgainIsAwaitedAgain) {
  // A window is longer than a busy machine takes to run a thread. Nine windows are longer than kFewWindows, the limit
  // for one.
  constexpr absl::Duration kWindow = absl::Seconds(3);
  constexpr absl::Duration kFewWindows = absl::Seconds(20);
  const auto shard = MakeShard(Request(v1::AveragingSpec::SYNC, 3, kWindow), 3);
  const auto both = [&shard](uint64_t sequence) {
    std::thread other([&] { EXPECT_TRUE(Send(*shard, {1, 0, 1}, sequence, 1).ok()); });
    EXPECT_TRUE(Send(*shard, {0, 0, 1}, sequence, 1).ok());
    other.join();
  };
  std::thread third([&] { EXPECT_TRUE(Send(*shard, {2, 0, 1}, 1, 1).ok()); });
  both(1);
  third.join();
  const absl::Time start = absl::Now();
  for (uint64_t sequence = 2; sequence <= 10; ++sequence) both(sequence);
  EXPECT_GE(absl::Now() - start, kWindow);
  EXPECT_LT(absl::Now() - start, kFewWindows);
  EXPECT_EQ(shard->updates(), 10u);

  ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {2, 0, 2}, absl::Seconds(20)).ok());
  std::thread others([&] { both(11); });
  EXPECT_FALSE(HasHad(*shard, 11, absl::Milliseconds(200))) << "they did not wait for it";
  EXPECT_TRUE(Send(*shard, {2, 0, 2}, 2, 4).ok());  // The new incarnation continues the group's steps.
  others.join();
  EXPECT_FLOAT_EQ(shard->CopyBlock(0).values[0], -12 * kRate);  // In the last round the mean is (1 + 1 + 4) / 3.
  EXPECT_EQ(shard->updates(), 11u);
}

// No group waits for a group that has made its last step.
TEST(ShardAllGroups, AGroupThatHasEndedIsNotAwaited) {
  const auto shard = MakeShard(Request(v1::AveragingSpec::SYNC, 2, kLong), 2);
  const absl::Time start = absl::Now();
  std::thread other([&] { EXPECT_TRUE(Send(*shard, {1, 0, 1}, kSteps, 1).ok()); });
  EXPECT_TRUE(Send(*shard, {0, 0, 1}, kSteps - 5, 1).ok());
  other.join();
  for (uint64_t sequence = kSteps - 4; sequence <= kSteps; ++sequence) {
    EXPECT_TRUE(Send(*shard, {0, 0, 1}, sequence, 1).ok());
  }
  EXPECT_LT(absl::Now() - start, kAtOnce);
  EXPECT_EQ(shard->updates(), 6u);
}

}  // namespace
}  // namespace hooke
