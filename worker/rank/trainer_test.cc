#include "worker/rank/trainer.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/rank/trainer_run.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

using TrainerTest = TrainerRun;

// A group of n ranks with batch b makes the same steps as one rank with batch n b, with the same samples and the same
// mean gradients.
TEST_F(TrainerTest, RanksTogetherAreOneBigBatch) {
  with_servers_ = false;
  options_.batch = 12;
  GroupResult one = Run({.ranks = 1, .stands_for = 3});
  options_.batch = 4;
  GroupResult three = Run({.ranks = 3});
  ASSERT_EQ(*one.steps[0], 16u);
  EXPECT_THAT(three.steps, Each(absl::StatusOr<uint64_t>(16)));
  ExpectSame(three.vectors);
  for (uint64_t i : {uint64_t{0}, kValues - 1}) EXPECT_NEAR(three.vectors[0][i], one.vectors[0][i], 1e-5);
  EXPECT_EQ(three.progress.step(), 16u);
  EXPECT_EQ(three.progress.steps_total(), 16u);
  EXPECT_EQ(three.progress.exchanges(), 0u);
}

// Without servers a group evaluates its own values: after each epoch as asked, and at the end.
TEST_F(TrainerTest, AloneItEvaluatesItself) {
  with_servers_ = false;
  options_.evaluate_every = 1;
  Run({.ranks = 2, .seed = 3});
  std::vector<v1::RankEvent> evaluated = record_.Of(v1::RankEvent::kEvaluated);
  ASSERT_THAT(evaluated, SizeIs(2));
  EXPECT_EQ(evaluated[0].evaluated().step(), 12u);
  EXPECT_EQ(evaluated[1].evaluated().step(), 24u);
  EXPECT_EQ(evaluated[1].evaluated().samples(), 10u);
  EXPECT_EQ(evaluated[1].evaluated().accuracy(), 1.0);
}

// Two ranks exchange with the center. All ranks end with the same values.
TEST_F(TrainerTest, ExchangesWithTheCenter) {
  GroupResult result = Run({.ranks = 2, .seed = 40});
  EXPECT_EQ(*result.steps[0], 24u);
  EXPECT_EQ(*result.steps[1], 24u);
  ExpectSame(result.vectors);
  EXPECT_EQ(result.progress.exchanges(), 8u);
  EXPECT_EQ(result.progress.exchange_failures(), 0u);
  EXPECT_EQ(servers_[0]->applied() + servers_[1]->applied(), 8 * 4);
  EXPECT_NEAR(servers_[0]->center()[0], result.vectors[0][0], 3);
  EXPECT_LT(servers_[0]->center()[0], 20);     // The center's value began at 40.
  EXPECT_GT(servers_[1]->center().back(), 0);  // The buffer counts the batches seen.
  EXPECT_EQ(record_.Of(v1::RankEvent::kNotice).size(), 0u);
}

// Exchanges come by time instead of by steps: rank 0's clock decides for all ranks. Each step here takes one second,
// and later three.
TEST_F(TrainerTest, ExchangesByTime) {
  std::atomic<int> seconds{0};
  GroupToTrain run;
  run.ranks = 3;
  run.before_step = [&seconds](uint64_t step) { seconds += step < 8 ? 1 : 3; };
  options_.training.interval_time = absl::Seconds(4);
  options_.training.clock = [&seconds, start = SteadyTime()] { return start + absl::Seconds(seconds.load()); };
  GroupResult result = Run(run);
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(16)));
  ExpectSame(result.vectors);
  // Exchanges come after steps 4 and 8, then after every second step. The last one comes at the end.
  EXPECT_EQ(result.progress.exchanges(), 6u);
}

// With a delay, steps go on while a server holds its answers back, also during an evaluation. At the end no exchange is
// in flight.
TEST_F(TrainerTest, TrainsOnWhileAnExchangeIsOnItsWay) {
  options_.training.rhythm.interval = 6;
  options_.training.rhythm.delay = 4;
  options_.evaluate_every = 1;  // An epoch has 12 steps.
  std::vector<uint64_t> steps;
  GroupToTrain run;
  run.ranks = 2;
  run.seed = 40;
  run.before_step = [&](uint64_t step) {  // `step` is the number of steps done so far.
    steps.push_back(step);
    if (step % 6 == 5) servers_[1]->SetAnswering(false);
    if (step % 6 == 2) servers_[1]->SetAnswering(true);
    // The last exchange waits for the answers.
    if (step == 23) servers_[1]->SetAnswering(true);
  };
  const GroupResult result = Run(run);
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  ExpectSame(result.vectors);
  EXPECT_THAT(steps, SizeIs(24));
  EXPECT_EQ(result.progress.exchanges(), 4u);
  EXPECT_EQ(result.progress.exchange_failures(), 0u);
  EXPECT_THAT(record_.Of(v1::RankEvent::kEvaluated), SizeIs(1));
  EXPECT_LT(servers_[0]->center()[0], 25);  // The center's value began at 40.
}

// Post-local SGD exchanges after each step in the first epoch, then by the interval.
TEST_F(TrainerTest, ExchangesAfterEachStepAtFirst) {
  options_.training.rhythm.each_step_until = 12;
  const GroupResult result = Run({.ranks = 2});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_EQ(result.progress.exchanges(), 12u + 4u);
}

// One group is three times slower than the fastest. Its interval becomes a third, so that both groups exchange equally
// often. A step takes one second in one group and three in the other, without exchanges.
TEST_F(TrainerTest, TheIntervalFollowsTheSpeed) {
  options_.groups = 2;
  options_.epochs = 10;
  options_.training.rhythm.interval = 12;
  options_.training.adapts_interval = true;
  uint64_t exchanges[2] = {};
  for (const uint32_t group : {0, 1}) {
    std::atomic<int> seconds{0};
    GroupToTrain run;
    run.group = group;
    run.ranks = 2;
    run.before_step = [&](uint64_t) { seconds += group == 0 ? 1 : 3; };
    options_.training.clock = [&seconds, start = SteadyTime()] { return start + absl::Seconds(seconds.load()); };
    const GroupResult result = Run(run);
    EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(60)));
    ExpectSame(result.vectors);
    exchanges[group] = result.progress.exchanges();
  }
  EXPECT_EQ(exchanges[0], 5u);  // Exchanges after 12, 24, ..., 60 steps.
  // Group 1 exchanges after step 12 and learns group 0's speed. From then on it exchanges every 4 steps.
  EXPECT_EQ(exchanges[1], 1u + (60u - 12u) / 4);
}

// Computes, in double precision, one value of a group of one rank that trains with the elastic rule and momentum, and
// the center's value.
struct ElasticValues {
  double group = 40;
  double center = 40;
};
ElasticValues ElasticReference(uint32_t batch, uint64_t each_step_until) {
  SamplerOptions sampling;
  sampling.samples = 96;
  sampling.batch = batch;
  sampling.seed = 9;
  Sampler sampler = *Sampler::Make(sampling);
  ElasticValues values;
  double velocity = 0;
  for (uint64_t step = 1; step <= 48; ++step) {
    double target = 0;
    for (const uint32_t index : sampler.BatchIndices(step - 1)) target += index % 7 / 4.0;
    velocity = 0.5 * velocity + (values.group - target);
    values.group -= 0.1 * velocity;
    if (step > each_step_until && step % 3 != 0) continue;
    const double difference = 0.5 * (values.group - values.center);
    values.center += difference;
    values.group -= difference;
  }
  return values;
}

// EAMSGD: the exchange x <- x - d does not change the velocity of the group's momentum. The test compares with the
// formula in double precision. Exchanges after each of the first steps do not change it either, even if their number is
// no multiple of the interval.
TEST_F(TrainerTest, ElasticExchangesLeaveTheMomentumAlone) {
  for (const uint64_t each_step_until : {0, 13}) {
    SCOPED_TRACE(each_step_until);
    for (auto& server : servers_) server->Forget();
    options_.training.rhythm.each_step_until = each_step_until;
    const GroupResult result = Run({.ranks = 1, .seed = 40});
    ASSERT_EQ(*result.steps[0], 48u);
    const ElasticValues should = ElasticReference(options_.batch, each_step_until);
    for (const uint64_t i : {uint64_t{0}, kValues - 1}) EXPECT_NEAR(result.vectors[0][i], should.group, 1e-4);
    EXPECT_NEAR(servers_[0]->center()[0], should.center, 1e-4);
  }
}

// A group that equals the center, and whose training changes nothing, leaves the center exactly as it is.
TEST_F(TrainerTest, FollowsTheRuleByHand) {
  options_.training.rhythm.interval = 1;
  // Gradients change almost nothing, so only the elastic rule moves the values.
  options_.schedule.learning_rate = 1e-30;
  ASSERT_TRUE(Run({.group = 0, .seed = 8}).steps[0].ok());
  EXPECT_EQ(servers_[0]->center()[0], 8.0f);
}

// Exchanges and evaluations find a complete vector and leave a complete one, with every kind of aggregation.
TEST_F(TrainerTest, AggregationDoesNotChangeExchanges) {
  options_.evaluate_every = 1;
  options_.groups = 2;
  options_.training.group_step.overlap = false;
  const GroupResult plain = Run({.ranks = 2, .seed = 40});
  ASSERT_TRUE(plain.steps[0].ok()) << plain.steps[0].status();
  const std::vector<float> center = servers_[0]->center();
  for (AggregationKind kind : {AggregationKind::kAllReduce, AggregationKind::kRooted, AggregationKind::kSharded}) {
    for (IssuePolicy order : {IssuePolicy::kFunneled, IssuePolicy::kConcurrent, IssuePolicy::kChained}) {
      for (auto& server : servers_) server->Forget();
      options_.training.group_step.kind = kind;
      options_.training.group_step.overlap = true;
      options_.training.group_step.order = order;
      options_.training.group_step.bucket_bytes = 4 * kValues / 3;
      const GroupResult result = Run({.ranks = 2, .seed = 40});
      EXPECT_THAT(result.steps, Each(*plain.steps[0])) << static_cast<int>(kind) << NameOf(order);
      EXPECT_EQ(result.vectors, plain.vectors);
      EXPECT_EQ(servers_[0]->center(), center);
    }
  }
}

// Group 0 evaluates the center between epochs, not at the end. Then it goes on with its own values.
TEST_F(TrainerTest, EvaluatesTheCenter) {
  options_.evaluate_every = 1;
  options_.groups = 2;
  options_.epochs = 3;
  GroupResult with = Run({.group = 0, .ranks = 2, .seed = 3});
  std::vector<v1::RankEvent> evaluated = record_.Of(v1::RankEvent::kEvaluated);
  ASSERT_THAT(evaluated, SizeIs(2));
  EXPECT_EQ(evaluated[0].evaluated().step(), 6u);
  EXPECT_EQ(evaluated[0].evaluated().epoch(), 1.0);
  EXPECT_EQ(evaluated[1].evaluated().step(), 12u);

  // Without evaluations the group ends with the same values, so evaluations leave no value of the center behind.
  for (auto& server : servers_) server->Forget();
  options_.evaluate_every = 0;
  GroupResult without = Run({.group = 0, .ranks = 2, .seed = 3});
  EXPECT_EQ(with.vectors[0], without.vectors[0]);

  // Groups other than 0 do not evaluate.
  options_.evaluate_every = 1;
  Run({.group = 1, .ranks = 2});
  EXPECT_THAT(record_.Of(v1::RankEvent::kEvaluated), SizeIs(2));
}

// Under rule none groups start from one center and train alone. Group 0's values become the center at its evaluations
// and at its end.
TEST_F(TrainerTest, RuleNonePublishesGroupZero) {
  options_.training.rule = RuleName::kNone;
  options_.groups = 2;
  options_.evaluate_every = 1;
  GroupResult zero = Run({.group = 0, .ranks = 2, .seed = 40});
  EXPECT_EQ(zero.progress.exchanges(), 2u);  // After one epoch of two, and at the end.
  std::vector<float> center = servers_[0]->center();
  EXPECT_EQ(center[0], zero.vectors[0][0]);
  GroupResult one = Run({.group = 1, .ranks = 2, .seed = 40});
  EXPECT_EQ(one.progress.exchanges(), 0u);
  EXPECT_EQ(servers_[0]->center(), center);
}

}  // namespace
}  // namespace hooke
