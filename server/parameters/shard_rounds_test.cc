// Checks how the rounds of a shard combine contributions. Threads act as groups. shard_waits_test.cc checks the
// waiting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_rounds.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLease = absl::Seconds(20);
constexpr double kRate = kRoundsRate;

// If a round's result would not be finite, all its groups get an error and nothing changes. Their next round is
// applied.
TEST(ShardRounds, ARoundThatWouldNotBeFiniteIsNobodys) {
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::AVERAGE, 2));
  const auto both = [&shard](uint64_t sequence, float value) {
    std::vector<absl::StatusOr<float>> answers(2, absl::UnknownError(""));
    std::thread other([&] { answers[1] = Send(*shard, {1, 0, 1}, sequence, value); });
    answers[0] = Send(*shard, {0, 0, 1}, sequence, value);
    other.join();
    return answers;
  };
  for (const float step : {3.4e38f, 3.4e38f}) {
    for (const absl::StatusOr<float>& answer : both(shard->updates() + 1, step)) ASSERT_TRUE(answer.ok());
  }
  const Shard::BlockCopy before = shard->CopyBlock(0);
  for (const absl::StatusOr<float>& answer : both(3, 3.4e38f)) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(answer.status().message()),
                HasSubstr("what group 0 and group 1 sent would make, in the center of job job-1, value 0 -inf; the "));
  }
  EXPECT_EQ(shard->CopyBlock(0).values, before.values);
  EXPECT_EQ(shard->CopyBlock(0).applied, before.applied);
  EXPECT_EQ(shard->updates(), 2u);
  for (const absl::StatusOr<float>& answer : both(3, -3.4e38f)) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(*answer, before.values[0] + 0.5f * 3.4e38f);
  }
}

// If the velocity would become infinite, velocity and center stay as they were. The same exchange may come again with
// other values.
TEST(ShardRounds, StateStaysFinite) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::ASYNC, 1);
  request.mutable_job()->mutable_optimizer()->set_momentum(0.9);
  request.mutable_job()->mutable_optimizer()->set_learning_rate(1e-30);
  const auto shard = MakeRoundsShard(request);
  ASSERT_TRUE(Send(*shard, {0, 0, 1}, 1, 3e38f).ok());
  const Shard::BlockCopy before = shard->CopyBlock(0);
  const absl::Status status = Send(*shard, {0, 0, 1}, 2, 3e38f).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(shard->CopyBlock(0).values, before.values);
  EXPECT_EQ(shard->CopyBlock(0).state, before.state);
  ASSERT_TRUE(Send(*shard, {0, 0, 1}, 2, 0).ok());
  EXPECT_FLOAT_EQ(shard->CopyBlock(0).state[0], 0.9f * 3e38f);
}

// A group's part in a random schedule: its steps and the values that it sends, by exchange.
struct GroupPlan {
  std::vector<uint64_t> sequences;
  std::vector<std::vector<float>> sent;  // All values, by exchange.
  std::vector<bool> repeats;
};

std::vector<GroupPlan> RandomPlans(uint32_t seed, uint32_t groups, int exchanges) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<GroupPlan> plans(groups);
  for (GroupPlan& plan : plans) {
    uint64_t sequence = 0;
    for (int exchange = 0; exchange < exchanges; ++exchange) {
      sequence += 1 + random() % 3;
      plan.sequences.push_back(sequence);
      plan.repeats.push_back(random() % 3 == 0);
      plan.sent.emplace_back();
      for (int i = 0; i < 10; ++i) plan.sent.back().push_back(value(random));
    }
  }
  return plans;
}

uint64_t StepsOf(const GroupPlan& plan, size_t exchange) {
  return plan.sequences[exchange] - (exchange > 0 ? plan.sequences[exchange - 1] : 0);
}

// Returns the center after each round, in double precision.
std::vector<std::vector<double>> Reference(v1::AveragingSpec::Rule rule, const std::vector<GroupPlan>& plans,
                                           int exchanges) {
  std::vector<std::vector<double>> centers(1);
  for (const float value : Ramp(0, 10)) centers[0].push_back(value);
  for (int exchange = 0; exchange < exchanges; ++exchange) {
    std::vector<double> center = centers.back();
    double steps = 0;
    for (const GroupPlan& plan : plans) steps += static_cast<double>(StepsOf(plan, exchange));
    for (int i = 0; i < 10; ++i) {
      double mean = 0;
      for (const GroupPlan& plan : plans) {
        const bool sum = rule == v1::AveragingSpec::SYNC && i < 9;
        mean += plan.sent[exchange][i] * (sum ? 1 : static_cast<double>(StepsOf(plan, exchange))) / steps;
      }
      center[i] -= (i < 9 ? kRate : 1) * mean;
    }
    centers.push_back(center);
  }
  return centers;
}

// A group joins while another group is in the middle of its slice. The new group waits for the other group's next
// exchange. The other group finishes its slice alone. Afterwards both exchange in common rounds, and no thread waits
// out a grace window.
TEST(ShardRounds, AGroupJoinsInTheMiddleOfAnothersExchange) {
  for (const auto rule : {v1::AveragingSpec::SYNC, v1::AveragingSpec::AVERAGE}) {
    const v1::AttachRequest request = MakeRoundsRequest(rule, 2);
    const auto shard = MakeRoundsShard(request, /*groups=*/1);
    SendBlock(*shard, 0, 1, 0);
    ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {1, 0, 1}, kLease).ok());
    std::thread joins([&] {
      for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
        for (uint64_t block = 0; block < 3; ++block) SendBlock(*shard, 1, sequence, block);
      }
    });
    for (uint64_t block = 1; block < 3; ++block) SendBlock(*shard, 0, 1, block);
    for (uint64_t sequence = 2; sequence <= 4; ++sequence) {
      for (uint64_t block = 0; block < 3; ++block) SendBlock(*shard, 0, sequence, block);
    }
    joins.join();
    EXPECT_EQ(shard->updates(), 3u + 9u) << "each of three exchanges in one round for both";
  }
}

// Returns a request for a job with two fragments of three blocks each.
v1::AttachRequest FragmentsRequest(uint32_t groups) {
  v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::AVERAGE, groups, /*values=*/24);
  request.mutable_job()->set_fragments(2);
  return request;
}

// Asks the shard which fragment is next, and sends that fragment.
void SendNextFragment(Shard& shard, uint32_t group, uint64_t sequence) {
  const auto pace = shard.TellPace(absl::UnixEpoch(), {group, 0, 1}, 0);
  ASSERT_TRUE(pace.ok()) << pace.status();
  for (uint64_t block = 0; block < 3; ++block)
    SendBlock(shard, group, sequence, uint64_t{3} * pace->next_fragment + block);
}

// A group joins while another group is in the middle of a fragment. The new group begins with the next fragment, in
// common rounds with the other group. Afterwards both exchange the same fragments together, in turns. No thread waits
// out a grace window.
TEST(ShardRounds, AGroupJoinsInTheMiddleOfAFragment) {
  const auto shard = MakeRoundsShard(FragmentsRequest(2), /*groups=*/1);
  SendBlock(*shard, 0, 1, 0);
  ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {1, 0, 1}, kLease).ok());
  std::thread joins([&] {
    for (uint64_t sequence = 1; sequence <= 4; ++sequence) SendNextFragment(*shard, 1, sequence);
  });
  for (uint64_t block = 1; block < 3; ++block) SendBlock(*shard, 0, 1, block);
  for (uint64_t sequence = 2; sequence <= 5; ++sequence) SendNextFragment(*shard, 0, sequence);
  joins.join();
  EXPECT_EQ(shard->updates(), 3u + 12u) << "each of four exchanges in one round for both";
  for (const uint64_t block : {0, 1, 2}) EXPECT_EQ(shard->CopyBlock(block).updates, 3u);
  for (const uint64_t block : {3, 4, 5}) EXPECT_EQ(shard->CopyBlock(block).updates, 2u);
}

// An exchange of all fragments is one exchange: its first block decides which groups are in its rounds.
TEST(ShardRounds, AllFragmentsInOneExchange) {
  const auto shard = MakeRoundsShard(FragmentsRequest(2), /*groups=*/1);
  for (uint64_t block = 0; block < 3; ++block) SendBlock(*shard, 0, 7, block);
  ASSERT_TRUE(shard->Attach(absl::UnixEpoch(), {1, 0, 1}, kLease).ok());
  for (uint64_t block = 3; block < 6; ++block) SendBlock(*shard, 0, 7, block);
  EXPECT_EQ(shard->updates(), 6u);
}

// A group that starts again goes on from the fragment that is furthest behind. Its first values of another fragment
// stand for all steps since the new incarnation began, not for those since that fragment's last exchange.
TEST(ShardRounds, ANewIncarnationCountsItsOwnSteps) {
  const auto shard = MakeRoundsShard(FragmentsRequest(2));
  std::thread both([&] { EXPECT_TRUE(Send(*shard, {1, 0, 1}, 4, 0).ok()); });
  EXPECT_FLOAT_EQ(*Send(*shard, {0, 0, 1}, 4, 0), 0);
  both.join();
  const auto again = shard->Attach(absl::UnixEpoch(), {0, 0, 2}, kLease);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->last_sequence, 0u) << "of the second fragment";
  both = std::thread([&] { EXPECT_TRUE(Send(*shard, {1, 0, 1}, 8, 0).ok()); });
  EXPECT_FLOAT_EQ(*Send(*shard, {0, 0, 2}, 6, 1), -kRate * 6 / (6 + 4));
  both.join();
}

// TellPace tells groups the recent speed of the fastest group.
TEST(ShardRounds, TheFastestGroupIsKnown) {
  const auto shard = MakeRoundsShard(MakeRoundsRequest(v1::AveragingSpec::AVERAGE, 2));
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const auto fastest = [&](absl::Time at, uint32_t group, double own) {
    return shard->TellPace(at, {group, 0, 1}, own).value().fastest_steps_per_second;
  };
  EXPECT_EQ(fastest(now, 0, 0), 0);
  EXPECT_EQ(fastest(now, 0, 9), 9);
  EXPECT_EQ(fastest(now + absl::Minutes(5), 1, 4), 9);
  EXPECT_EQ(fastest(now + absl::Minutes(11), 1, 5), 5);
  EXPECT_EQ(shard->TellPace(now, {0, 0, 1}, std::nan("")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(shard->TellPace(now, {0, 0, 1}, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(shard->TellPace(now, {2, 0, 1}, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

// A hundred random schedules have one to eight groups of different speed. Some groups send blocks twice. Every answer
// of every round is the center that Reference() computes in double precision, and has the same bits for all groups.
TEST(ShardRounds, AreExact) {
  constexpr int kExchanges = 4;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const uint32_t groups = seed % 8 + 1;
    const auto rule = seed % 3 == 0 ? v1::AveragingSpec::AVERAGE : v1::AveragingSpec::SYNC;
    const auto shard = MakeRoundsShard(MakeRoundsRequest(rule, groups));
    const std::vector<GroupPlan> plans = RandomPlans(seed, groups, kExchanges);
    // Each group's answers, in order: for each round, the answers of its blocks.
    std::vector<std::vector<float>> answers(groups);
    std::vector<std::thread> threads;
    for (uint32_t group = 0; group < groups; ++group) {
      threads.emplace_back([&, group] {
        for (int exchange = 0; exchange < kExchanges; ++exchange) {
          for (uint64_t block = 0; block < 3; ++block) {
            const Range range = shard->BlockRange(block);
            const auto sent = absl::MakeConstSpan(plans[group].sent[exchange]).subspan(range.begin, range.size());
            std::vector<float> answer(range.size());
            for (int times = plans[group].repeats[exchange] ? 2 : 1; times > 0; --times) {
              const BlockExchange id = {{group, 0, 1}, plans[group].sequences[exchange], range.begin};
              const absl::Status status = shard->ApplyBlock(id, sent, absl::MakeSpan(answer));
              EXPECT_TRUE(status.ok()) << status;
            }
            answers[group].insert(answers[group].end(), answer.begin(), answer.end());
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto centers = Reference(rule, plans, kExchanges);
    for (uint32_t group = 0; group < groups; ++group) {
      ASSERT_EQ(answers[group], answers[0]) << "seed " << seed;
      for (size_t i = 0; i < answers[group].size(); ++i) {
        ASSERT_NEAR(answers[group][i], centers[i / 10 + 1][i % 10], 1e-5) << "seed " << seed << ", value " << i;
      }
    }
    EXPECT_EQ(shard->updates(), 3u * kExchanges);
  }
}

// Under async, a hundred random schedules of one to eight groups follow the formula. Each exchange moves the center by
// itself. The move depends on how many of the group's steps the exchange holds, and on how many updates others made
// since the group's last answer.
TEST(ShardRounds, AsynchronousStepsAreExact) {
  constexpr int kExchanges = 6;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const uint32_t groups = seed % 8 + 1;
    v1::AttachRequest request = MakeRoundsRequest(v1::AveragingSpec::ASYNC, groups);
    request.mutable_job()->set_staleness_power(0.5);
    const auto shard = MakeRoundsShard(request);
    const std::vector<GroupPlan> plans = RandomPlans(seed, groups, kExchanges);
    std::mt19937 random(seed);
    double center = 0;
    uint64_t version = 0;
    std::vector<size_t> done(groups);
    std::vector<uint64_t> seen(groups);
    for (uint32_t turn = 0; turn < groups * kExchanges; ++turn) {
      uint32_t group = random() % groups;
      while (done[group] == kExchanges) group = (group + 1) % groups;
      const size_t exchange = done[group]++;
      const float value = plans[group].sent[exchange][0];
      // The shard does not know which center a group has before its first answer.
      const double staleness = exchange == 0 ? 0 : static_cast<double>(version - seen[group]);
      center -= kRate / std::sqrt(1 + staleness) * value / static_cast<double>(StepsOf(plans[group], exchange));
      seen[group] = ++version;
      for (int times = plans[group].repeats[exchange] ? 2 : 1; times > 0; --times) {
        const auto answer = Send(*shard, {group, 0, 1}, plans[group].sequences[exchange], value);
        ASSERT_TRUE(answer.ok()) << answer.status();
        ASSERT_NEAR(*answer, center, 1e-5) << "seed " << seed;
      }
    }
  }
}

// A gradient of an older center is dropped. Its group gets the new center, so its next gradient counts. A late distance
// counts in the next round. It counts half if the other group has made a round of its own meanwhile, or if the round
// waited for the other group.
TEST(ShardRounds, LateGradientsAreDroppedAndLateDistancesCount) {
  for (const auto rule : {v1::AveragingSpec::SYNC, v1::AveragingSpec::AVERAGE}) {
    v1::AttachRequest request = MakeRoundsRequest(rule, 2);
    request.mutable_job()->set_grace_seconds(0);
    const auto shard = MakeRoundsShard(request);
    const bool drops = rule == v1::AveragingSpec::SYNC;
    EXPECT_FLOAT_EQ(*Send(*shard, {0, 0, 1}, 1, 1), (drops ? -1 : -0.5) * kRate);
    // The shard does not know from which center the group's first values are.
    EXPECT_FLOAT_EQ(*Send(*shard, {1, 0, 1}, 1, 1), (drops ? -2 : -1) * kRate);
    EXPECT_FLOAT_EQ(*Send(*shard, {0, 0, 1}, 2, 1), (drops ? -2 : -1.5) * kRate);
    EXPECT_FLOAT_EQ(*Send(*shard, {0, 0, 1}, 3, 1), (drops ? -3 : -2.5) * kRate);
  }
}

}  // namespace
}  // namespace hooke
