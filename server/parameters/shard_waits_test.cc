// How long a shard's groups wait for each other, and how a wait ends: under rules with rounds, and with a bound on
// staleness. Threads act as groups.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/test_clock.h"
#include "server/parameters/test_rounds.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr absl::Duration kLease = absl::Seconds(20);
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr double kRate = kRoundsRate;

// A dead group costs the others one grace window, not one for each block and round. Then the others go on alone.
TEST(ShardWaits, ADeadGroupIsWaitedForOnce) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::SYNC, 2);
  request.mutable_job()->set_grace_seconds(1);
  const auto shard = MakeRoundsShard(request);
  const absl::Time start = absl::Now();
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) ASSERT_TRUE(Send(*shard, {0, 0, 1}, sequence, 1).ok());
  EXPECT_GE(absl::Now() - start, absl::Seconds(1));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  EXPECT_FLOAT_EQ(FirstValue(*shard), -20 * kRate);
}

// Without its quorum a round makes no step. The groups get an error that says to try again, and their values change
// nothing.
TEST(ShardWaits, NoStepWithoutAQuorum) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::SYNC, 2);
  request.mutable_job()->set_quorum(2);
  request.mutable_job()->set_grace_seconds(0);
  const auto shard = MakeRoundsShard(request);
  absl::Status status;
  std::thread waiting([&] { status = Send(*shard, {0, 0, 1}, 1, 1).status(); });
  shard->StopWaiting();
  waiting.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(FirstValue(*shard), 0);
  EXPECT_EQ(shard->updates(), 0u);
  EXPECT_EQ(shard->CopyBlock(0).applied[0], ExchangeId{});
}

// A group that stops early is not needed for the quorum any more, even in a round that already waits for it. It may
// attach once more to see whether its end is saved. A later start of the group is awaited again.
TEST(ShardWaits, NobodyWaitsForAGroupThatStoppedEarly) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::SYNC, 2);
  request.mutable_job()->set_quorum(2);
  const auto shard = MakeRoundsShard(request);
  absl::Status status = absl::UnknownError("");
  std::thread waiting([&] { status = Send(*shard, {0, 0, 1}, 1, 1).status(); });
  ASSERT_TRUE(shard->EndGroup({1, 0, 1}, false).ok());
  waiting.join();
  EXPECT_TRUE(status.ok()) << status;
  ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {1, 0, 1}, kLease).ok());
  EXPECT_TRUE(Send(*shard, {0, 0, 1}, 2, 1).ok());
  ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {1, 0, 2}, kLease).ok());
  std::thread again([&] { status = Send(*shard, {0, 0, 1}, 3, 1).status(); });
  EXPECT_TRUE(Send(*shard, {1, 0, 2}, 1, 1).ok());
  again.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(shard->CopyBlock(0).updates, 3u) << "the third round had both groups";
}

// Only the present start of a group can end it. The job is to stop once a group says so.
TEST(ShardWaits, AGroupStopsTheJob) {
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::AVERAGE, 2));
  const auto stops = [&shard] { return shard->TellPace(absl::UnixEpoch(), {1, 0, 1}, 0)->stops; };
  EXPECT_FALSE(stops());
  ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {0, 0, 2}, kLease).ok());
  EXPECT_EQ(shard->EndGroup({0, 0, 1}, true).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(shard->EndGroup({0, 0, 3}, true).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(shard->EndGroup({2, 0, 1}, true).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(shard->EndGroup({0, 0, 2}, false).ok());
  EXPECT_FALSE(stops());
  EXPECT_TRUE(shard->EndGroup({0, 0, 2}, true).ok());
  EXPECT_TRUE(shard->EndGroup({0, 0, 2}, false).ok());
  EXPECT_TRUE(stops());
}

// A group that has made its last step is not needed for the quorum any more: the other group makes its steps alone.
TEST(ShardWaits, AQuorumOfThoseThatRemain) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::SYNC, 2);
  request.mutable_job()->set_quorum(2);
  const auto shard = MakeRoundsShard(request);
  std::thread both([&] {
    for (uint64_t block = 0; block < 3; ++block) SendBlock(*shard, 1, 10, block);
  });
  for (uint64_t block = 0; block < 3; ++block) SendBlock(*shard, 0, 8, block);
  both.join();
  for (uint64_t block = 0; block < 3; ++block) SendBlock(*shard, 0, 9, block);
  EXPECT_EQ(shard->updates(), 6u);
}

// If a block comes again on another stream while the first stream still waits, the block counts once.
TEST(ShardWaits, TheSameExchangeOnTwoStreamsCountsOnce) {
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::SYNC, 2));
  TwoStreams streams([&] {
    const auto answer = Send(*shard, {0, 0, 1}, 1, 3);
    if (!answer.ok()) {
      EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable) << answer.status();
    }
    return answer.ok();
  });
  EXPECT_TRUE(streams.OneLeft(kPatience));
  EXPECT_FLOAT_EQ(*Send(*shard, {1, 0, 1}, 1, 1), -2 * kRate);  // (3 + 1) / 2.
  EXPECT_EQ(streams.Answered(), 1);
  EXPECT_EQ(shard->updates(), 1u);
}

// Waiting threads are woken when the job ends, when the server stops, and when a later incarnation replaces theirs.
TEST(ShardWaits, WhoeverWaitsIsToldWhyItNeedNot) {
  struct Case {
    std::function<void(Shard&)> happens;
    absl::StatusCode code;
  };
  const Case cases[] = {
      {[](Shard& shard) { shard.Close(); }, absl::StatusCode::kFailedPrecondition},
      {[](Shard& shard) { shard.StopWaiting(); }, absl::StatusCode::kUnavailable},
      {[](Shard& shard) {
         EXPECT_TRUE(shard.Attach(absl::UnixEpoch(), {0, 0, 2}, kLease).ok());
       },
       absl::StatusCode::kAborted},
  };
  for (const Case& c : cases) {
    const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::SYNC, 2));
    const absl::Time start = absl::Now();
    absl::Status status;
    std::thread waiting([&] { status = Send(*shard, {0, 0, 1}, 1, 1).status(); });
    c.happens(*shard);
    waiting.join();
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_LT(absl::Now() - start, absl::Seconds(9)) << "not by the grace window of 10 seconds";
    EXPECT_EQ(FirstValue(*shard), 0);
  }
}

// A group further ahead than the bound gets its answer once the slower group has come closer, and not before.
TEST(ShardWaits, ABoundHoldsFastGroupsBack) {
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::SSP, 2));
  EXPECT_TRUE(Send(*shard, {0, 0, 1}, 1, 1).ok());
  EXPECT_TRUE(Send(*shard, {0, 0, 1}, 2, 1).ok());
  std::atomic<bool> slower_moves{false};
  std::thread fast([&] {
    const auto answer = Send(*shard, {0, 0, 1}, 3, 1);
    EXPECT_TRUE(slower_moves);
    EXPECT_FLOAT_EQ(answer.value(), -4 * kRate) << "it sees what it has waited for";
  });
  const absl::Time give_up = absl::Now() + kPatience;
  while (shard->updates() < 3 && absl::Now() < give_up) std::this_thread::yield();  // Its own step is applied at once.
  slower_moves = true;
  EXPECT_FLOAT_EQ(*Send(*shard, {1, 0, 1}, 1, 1), -4 * kRate);
  fast.join();
}

// The shard waits only once for a group that makes no steps at all.
TEST(ShardWaits, ABoundDoesNotHoldForTheDead) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::SSP, 2);
  request.mutable_job()->set_grace_seconds(1);
  const auto shard = MakeRoundsShard(request);
  const absl::Time start = absl::Now();
  for (uint64_t sequence = 1; sequence <= 20; ++sequence) ASSERT_TRUE(Send(*shard, {0, 0, 1}, sequence, 1).ok());
  EXPECT_GE(absl::Now() - start, absl::Seconds(1));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
}

// The grace window, the wait for a quorum and the wait for slower groups use only the clock that the shard is given.
// Setting the machine's clock does not change these waits.
TEST(ShardWaits, WaitsGoByTheShardsClock) {
  struct Case {
    v1::AveragingSpec::Rule rule;
    uint32_t quorum;
    absl::Duration wait;
    absl::StatusCode end;
  };
  const Case cases[] = {
      {v1::AveragingSpec::AVERAGE, 0, absl::Seconds(10), absl::StatusCode::kOk},
      {v1::AveragingSpec::AVERAGE, 2, absl::Seconds(10) + Shard::kRoundTimeout, absl::StatusCode::kUnavailable},
      {v1::AveragingSpec::SSP, 1, absl::Seconds(10), absl::StatusCode::kOk},
  };
  for (const Case& c : cases) {
    v1::AttachRequest request = MakeRoundsRequest(c.rule, 2);
    if (c.rule == v1::AveragingSpec::AVERAGE) request.mutable_job()->set_quorum(c.quorum);
    const auto clock = std::make_shared<TestClock>();
    const auto shard = MakeRoundsShard(request, 2, clock);
    std::atomic<bool> ended{false};
    absl::Status status;
    std::thread waiting([&] {
      status = Send(*shard, {0, 0, 1}, 9, 1).status();  // Further ahead than the bound.
      ended = true;
    });
    ASSERT_TRUE(clock->AwaitWaiting(1));
    clock->Advance(c.wait - absl::Milliseconds(1));
    ASSERT_TRUE(clock->AwaitWaiting(1));
    EXPECT_FALSE(ended);
    clock->Advance(absl::Milliseconds(1));
    waiting.join();
    EXPECT_EQ(status.code(), c.end) << status;
  }
}

// Two ranks of a group wait for the same dead group, at blocks of their own, one 9 s after the other. When the first
// rank's grace window has passed, the second rank goes on as well. It does not wait out a grace window of its own.
TEST(ShardWaits, ADeadGroupIsWaitedForOnceByAllRanks) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::AVERAGE, 2);
  request.mutable_job()->set_ranks(2);
  const auto clock = std::make_shared<TestClock>();
  const auto shard = MakeRoundsShard(request, 2, clock);
  const auto send = [&shard](uint32_t rank, uint64_t block) {
    const Range range = shard->BlockRange(block);
    const std::vector<float> values(range.size(), 1);
    std::vector<float> answer(range.size());
    EXPECT_EQ(shard->ApplyBlock({{0, rank, 1}, 1, range.begin}, values, absl::MakeSpan(answer)), absl::OkStatus());
  };
  std::thread first([&] { send(0, 0); });
  ASSERT_TRUE(clock->AwaitWaiting(1));
  clock->Advance(absl::Seconds(9));
  ASSERT_TRUE(clock->AwaitWaiting(1));
  std::thread second([&] { send(1, 2); });
  ASSERT_TRUE(clock->AwaitWaiting(2));
  clock->Advance(absl::Seconds(1));
  EXPECT_TRUE(clock->AwaitWaiting(0));
  clock->Advance(absl::Seconds(9));  // The second one's own window ends.
  first.join();
  second.join();
  EXPECT_EQ(shard->updates(), 2u);
}

// Eight groups arrive one after another, and all but the last must wait. An arrival that ends no wait wakes no thread,
// so each group waits once. Otherwise the cost of a block's arrivals would grow with the cube of the number of groups.
TEST(ShardWaits, AnArrivalWakesNobodyInVain) {
  constexpr uint32_t kGroups = 8;
  for (const auto rule : {v1::AveragingSpec::AVERAGE, v1::AveragingSpec::SSP}) {
    const auto clock = std::make_shared<TestClock>();
    const auto shard = MakeRoundsShard(MakeRoundsRequest(rule, kGroups), kGroups, clock);
    std::vector<std::thread> threads;
    const auto send = [&shard](uint32_t group) {
      EXPECT_TRUE(Send(*shard, {group, 0, 1}, 3, 1).ok());  // Further ahead than the bound.
    };
    for (uint32_t group = 0; group + 1 < kGroups; ++group) {
      threads.emplace_back(send, group);
      ASSERT_TRUE(clock->AwaitWaiting(group + 1));
    }
    EXPECT_EQ(clock->waits(), kGroups - 1u);
    send(kGroups - 1);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(clock->waits(), kGroups - 1u);
  }
}

// A shard restored from its snapshot awaits the groups that had attached, although they do not attach again. The first
// group that comes waits for the others through the grace window before its round closes.
TEST(ShardWaits, AfterARestartGroupsWaitForEachOther) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::AVERAGE, 2);
  constexpr absl::Duration kGrace = absl::Milliseconds(300);
  request.mutable_job()->set_grace_seconds(absl::ToDoubleSeconds(kGrace));
  const std::unique_ptr<Shard> before = MakeRoundsShard(request);
  const auto shard = Shard::Create(PlanShard(request, 4).value()).value();
  for (uint64_t block = 0; block < before->blocks(); ++block) shard->RestoreBlock(block, before->CopyBlock(block));
  shard->RestoreState(before->CopyGroups(), before->updates());
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(Send(*shard, {0, 0, 1}, 1, 1).ok());
  EXPECT_GE(absl::Now() - begin, kGrace) << "nobody was waited for";
}

}  // namespace
}  // namespace hooke
