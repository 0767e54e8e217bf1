// Tests the update rules through all layers: trainers of several groups, gRPC on loopback, a real parameter server.
#include <atomic>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "algorithms/center_rule.h"
#include "algorithms/rule_facts.h"
#include "algorithms/sharding.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "worker/data/sampler.h"
#include "worker/rank/rules_run_test.h"

namespace hooke {
namespace {

using Averaging = v1::AveragingSpec;

// Each rule has the same number and name in messages as in the table of facts. An unknown number is refused.
TEST(RuleNumbersTest, AreThoseOfTheJob) {
  EXPECT_EQ(AllRules().size(), static_cast<size_t>(Averaging::Rule_MAX));
  for (const RuleFacts& facts : AllRules()) {
    const auto number = static_cast<Averaging::Rule>(facts.rule);
    EXPECT_EQ(Averaging::Rule_Name(number), absl::AsciiStrToUpper(facts.name));
  }
  EXPECT_EQ(RuleOf(Averaging::RULE_UNSPECIFIED), std::nullopt);
  EXPECT_EQ(RuleOf(Averaging::Rule_MAX + 1), std::nullopt);
}

// Synchronous SGD with two groups of two ranks trains the same model as one group of four ranks with MPI alone. Four
// groups of one rank do so too, and groups of different sizes, which count by their samples. All runs use the same
// samples, momentum and schedule, and end with the same buffers.
TEST_F(RulesTest, SynchronousGroupsAreOneBigGroup) {
  const Rule sync = {Averaging::SYNC, RuleName::kSync};
  const auto with_momentum = [&sync](const Shape& shape) {
    v1::JobSpec job = Job(sync, shape);
    job.mutable_train()->mutable_optimizer()->set_momentum(0.5);
    job.mutable_averaging()->set_interval(1);
    return job;
  };
  const std::vector<float> alone = Train(with_momentum({1, 4}), sync.name, /*with_server=*/false)[0];
  EXPECT_NEAR(alone[0], kTarget, 1);
  for (const std::vector<uint32_t>& ranks :
       std::vector<std::vector<uint32_t>>{{2, 2}, {1, 1, 1, 1}, {1, 3}, {2, 1, 1}}) {
    SCOPED_TRACE(absl::StrJoin(ranks, ", "));
    StartAnew();
    v1::JobSpec job = with_momentum({});
    SetRanks(ranks, job);
    const auto groups = Train(job, sync.name);
    const std::vector<float> center = Center();
    for (const std::vector<float>& group : groups) EXPECT_EQ(group, center);
    for (uint64_t i = 0; i < center.size(); ++i) ASSERT_NEAR(center[i], alone[i], 1e-4) << i;
  }
}

// Without a quorum the groups end with the same bits, even if the second group starts later than the first. No group
// steps alone, neither in the first round nor in the last.
TEST_F(RulesTest, SynchronousGroupsThatStartApartAreOneBigGroup) {
  const Rule sync = {Averaging::SYNC, RuleName::kSync};
  const auto by_default = [&sync](const Shape& shape) {
    v1::JobSpec job = Job(sync, shape);
    job.mutable_train()->mutable_optimizer()->set_momentum(0.5);
    job.mutable_averaging()->set_interval(1);
    job.mutable_averaging()->clear_quorum();
    return job;
  };
  Train(by_default({1, 2}), sync.name);
  const std::vector<float> one_group = Center();
  EXPECT_NEAR(one_group[0], kTarget, 1);

  StartAnew();
  absl::Notification second_step;
  std::atomic<bool> noticed{false};
  on_step_ = [&](uint64_t step) {
    if (step == 1 && !noticed.exchange(true)) second_step.Notify();
  };
  start_ = [&second_step](uint32_t group) {
    if (group == 0) return;
    // This is enough time for group 0 to go on alone.
    EXPECT_FALSE(second_step.WaitForNotificationWithTimeout(absl::Seconds(1))) << "group 0 did not wait";
  };
  const auto groups = Train(by_default({2, 1}), sync.name);
  EXPECT_EQ(Center(), one_group);
  EXPECT_EQ(groups[0], one_group);
  EXPECT_EQ(groups[1], one_group);
}

struct Rhythm {
  uint32_t interval = 1;
  uint32_t delay = 0;
  uint32_t fragments = 1;
};

void SetRhythm(const Rhythm& rhythm, v1::JobSpec& job) {
  job.mutable_averaging()->set_interval(rhythm.interval);
  job.mutable_averaging()->set_delay(rhythm.delay);
  job.mutable_averaging()->set_fragments(rhythm.fragments);
}

// Under every other rule the groups' training moves the center from 40 towards the samples' target, as far as twelve
// steps bring it by that rule. That holds whether groups wait for answers or train on meanwhile, and for groups of two
// ranks as for one of three and one of one. Under rules with
// rounds all groups end exactly at the center.
TEST_F(RulesTest, EveryRuleLearns) {
  // The allowed distances of the final center from kTarget, for each rule and all rhythms below. The distance is 37 at
  // first. We computed two groups' steps by the formulas in a thousand orders of the samples. For some rules we also
  // varied the order of the groups, up to one after the other. The results lie inside these limits by at least 0.4 on
  // either side.
  // A group that trains alone ends at distance 4.9, which is 37 times the product of 1 - rate over all steps. The
  // average rule ends there, too. The elastic center moves four times by 0.3 of the difference, so it lags behind.
  // Downpour counts the steps of both groups in full and goes beyond the target.
  struct Left {
    Rule rule;
    float least, most;
  };
  const Left lefts[] = {
      {{Averaging::ELASTIC, RuleName::kElastic}, 11, 15.5},
      {{Averaging::ASYNC, RuleName::kAsync}, 3, 9},
      {{Averaging::SSP, RuleName::kSsp}, 3, 9},
      {{Averaging::DOWNPOUR, RuleName::kDownpour}, -13, 0.5},
      {{Averaging::AVERAGE, RuleName::kAverage}, 4, 6},
      {{Averaging::BMUF, RuleName::kBmuf}, 0, 2},
      {{Averaging::SLOWMO, RuleName::kSlowMo}, 2, 4},
      {{Averaging::DILOCO, RuleName::kDiLoCo}, 1.5, 3.5},
  };
  for (const auto& [rule, least, most] : lefts) {
    const bool gradients = rule.wire >= Averaging::SYNC && rule.wire <= Averaging::DOWNPOUR;
    for (const Rhythm& rhythm : {Rhythm{3, 0, 1}, Rhythm{3, 2, 1}, Rhythm{4, 0, 2}, Rhythm{4, 1, 2}}) {
      if (gradients && rhythm.fragments > 1) continue;
      SCOPED_TRACE(absl::StrCat(Averaging::Rule_Name(rule.wire), " ", rhythm.delay, " ", rhythm.fragments));
      StartAnew();
      v1::JobSpec job = Job(rule, {2, 2});
      if (rhythm.delay > 0) SetRanks({3, 1}, job);
      SetRhythm(rhythm, job);
      const auto groups = Train(job, rule.name);
      const std::vector<float> center = Center();
      for (const uint64_t i : {uint64_t{0}, kParameters - 1}) {
        EXPECT_GT(center[i] - kTarget, least);
        EXPECT_LT(center[i] - kTarget, most);
      }
      const bool in_rounds = rule.wire >= Averaging::AVERAGE;
      if (in_rounds) {
        EXPECT_EQ(groups[0], center);
        EXPECT_EQ(groups[1], center);
      }
      EXPECT_GT(center.back(), 0);  // The buffer counts the batches seen.
    }
  }
}

// Ranks whose gradients have the same sum make the same center, whether a group has one rank or several. Each of
// several ranks exchanges a part of the vector. There are two groups under rules with rounds. There is one group under
// the other rules, where the order of groups is not fixed. The tolerance is the rounding of sums of two and three
// gradients, in up to 24 steps from 40.
TEST_F(RulesTest, GroupsOfOneRankAndOfSeveralMakeTheSameCenter) {
  const Rule rules[] = {
      {Averaging::SYNC, RuleName::kSync},     {Averaging::AVERAGE, RuleName::kAverage},
      {Averaging::BMUF, RuleName::kBmuf},     {Averaging::SLOWMO, RuleName::kSlowMo},
      {Averaging::DILOCO, RuleName::kDiLoCo}, {Averaging::ELASTIC, RuleName::kElastic},
      {Averaging::ASYNC, RuleName::kAsync},   {Averaging::DOWNPOUR, RuleName::kDownpour},
  };
  // The samples move a group's ranks to both sides of the point to which they move a single rank.
  sample_ = [](const Place& place) {
    const int ranks = static_cast<int>(place.ranks);
    return 4.0f * static_cast<float>(place.group) + static_cast<float>(2 * static_cast<int>(place.rank) + 1 - ranks);
  };
  for (const Rule& rule : rules) {
    SCOPED_TRACE(Averaging::Rule_Name(rule.wire));
    const uint32_t groups = InRounds(rule.name) ? 2 : 1;
    std::vector<float> of_one;
    for (const uint32_t ranks : {1u, 2u, 3u}) {
      StartAnew();
      v1::JobSpec job = Job(rule, {groups, ranks});
      job.mutable_train()->set_epochs(ranks);  // With so many epochs each run has the same number of steps, at the same
                                               // rates.
      job.mutable_train()->mutable_optimizer()->set_momentum(0.5);
      Train(job, rule.name);
      const std::vector<float> center = Center();
      if (ranks == 1) of_one = center;
      for (uint64_t i = 0; i < center.size(); ++i) ASSERT_NEAR(center[i], of_one[i], 1e-4) << ranks << " ranks, " << i;
    }
    EXPECT_LT(of_one[0], 30) << "it has come from 40";
  }
}

// Computes the center's value at the end, in double precision, for one value of a fragment. The one group trains on
// between sending values and applying the answer.
double DelayedReference(const v1::JobSpec& job, uint64_t fragment) {
  const Averaging& averaging = job.averaging();
  const bool distances = averaging.rule() == Averaging::DILOCO;
  const bool downpour = averaging.rule() == Averaging::DOWNPOUR;
  std::vector<Sampler> samplers;
  for (uint32_t rank = 0; rank < job.groups().ranks(); ++rank) {
    SamplerOptions sampling;
    sampling.samples = kSamples;
    sampling.ranks = job.groups().ranks();
    sampling.batch = kBatch;
    sampling.seed = 9;
    sampling.rank = rank;
    samplers.push_back(*Sampler::Make(sampling));
  }
  double x = kStart, center = kStart, anchor = kStart, pending = 0, momentum = 0;
  double sent = 0, x_sent = 0;
  const uint64_t fragments = averaging.fragments(), stride = averaging.interval() / fragments;
  uint64_t begun = 0;  // 0: no exchange is in flight.
  const uint64_t total = samplers[0].division().steps_per_epoch() * job.train().epochs();
  for (uint64_t step = 1, last_sent = 0; step <= total; ++step) {
    double target = 0;
    for (Sampler& sampler : samplers) {
      for (const uint32_t index : sampler.BatchIndices(step - 1)) target += index % 7;
    }
    const double gradient = x - target / (kBatch * job.groups().ranks());
    pending += gradient;
    if (distances || downpour) x -= kRate * gradient;
    const auto finish = [&] {
      if (begun == 0) return;
      x = distances ? center + (x - x_sent) : center;
      anchor = center;
      pending -= sent;
      begun = 0;
    };
    if (step == begun + averaging.delay() || step == total) finish();
    const bool turn = step % stride == 0 && (step / stride - 1) % fragments == fragment;
    if (!turn && step != total) continue;
    begun = step;
    x_sent = x;
    sent = distances ? anchor - x : pending;
    if (distances) {
      // The last exchange may have fewer steps than an interval: docs/rules/average.md.
      const double m = averaging.momentum();
      const double decay = std::pow(m, static_cast<double>(step - last_sent) / averaging.interval());
      const double push = m * (1 - decay) / (1 - m);
      center -= averaging.learning_rate() * ((1 + m) * sent + m * push * momentum);
      momentum = decay * momentum + sent;
    } else {
      center -= kRate * sent / (downpour ? 1.0 : static_cast<double>(step - last_sent));
    }
    last_sent = step;
    if (step == total || averaging.delay() == 0) finish();
  }
  return center;
}

// The steps that a group makes between sending values and applying the answer are neither lost nor counted twice. Their
// gradients wait for the next exchange; their distances stay with the group. The test compares all layers with the
// formula.
TEST_F(RulesTest, DelayedAnswersAreExact) {
  const Rule rules[] = {{Averaging::SYNC, RuleName::kSync},
                        {Averaging::ASYNC, RuleName::kAsync},
                        {Averaging::SSP, RuleName::kSsp},
                        {Averaging::DOWNPOUR, RuleName::kDownpour},
                        {Averaging::DILOCO, RuleName::kDiLoCo}};
  for (const Rule& rule : rules) {
    for (const Rhythm& rhythm : {Rhythm{5, 1, 1}, Rhythm{5, 3, 1}, Rhythm{6, 0, 2}, Rhythm{6, 2, 2}}) {
      if (rule.wire != Averaging::DILOCO && rhythm.fragments > 1) continue;
      SCOPED_TRACE(absl::StrCat(Averaging::Rule_Name(rule.wire), " ", rhythm.delay, " ", rhythm.fragments));
      StartAnew();
      v1::JobSpec job = Job(rule, {1, 2});
      job.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
      SetRhythm(rhythm, job);
      Train(job, rule.name);
      // The first rank's blocks have one block of each fragment.
      const std::vector<float> center = Center();
      EXPECT_NEAR(center[0], DelayedReference(job, 0), 1e-4);
      EXPECT_NEAR(center[kBlockValues], DelayedReference(job, rhythm.fragments - 1), 1e-4);
    }
  }
}

// A server that has lost its disk gets its shard again, from the values from which the groups' distances count. That
// holds for every rank's slice. So the next distances count once, and the job ends with the same bits as without the
// loss.
TEST_F(RulesTest, ALostShardIsMadeAgainFromWhatTheCenterWas) {
  const Rule rules[] = {{Averaging::AVERAGE, RuleName::kAverage}, {Averaging::DOWNPOUR, RuleName::kDownpour}};
  for (const Rule& rule : rules) {
    SCOPED_TRACE(Averaging::Rule_Name(rule.wire));
    const v1::JobSpec job = Job(rule, {1, 2});  // Exchanges come after steps 3, 6, 9, ...
    std::vector<std::vector<float>> centers;
    for (const bool loses : {false, true}) {
      StartAnew();
      std::atomic<bool> lost{!loses};
      on_step_ = [&](uint64_t step) {
        if (step != 8 || lost.exchange(true)) return;
        StartAnew();
      };
      Train(job, rule.name);
      centers.push_back(Center());
    }
    EXPECT_EQ(centers[0], centers[1]);
  }
}

// If servers are away for a while, no steps are lost: the gradients of that time are sent together in the next
// exchange.
TEST_F(RulesTest, GradientsOfAnOutageArriveTogether) {
  const Rule sync = {Averaging::SYNC, RuleName::kSync};
  v1::JobSpec job = Job(sync, {1, 1});
  job.mutable_averaging()->set_interval(1);
  job.mutable_averaging()->set_grace_seconds(0);
  exchange_timeout_ = absl::Seconds(20);
  on_step_ = [this](uint64_t step) {
    if (step == 4) server_.Stop();
    if (step == 7) server_.Start();
  };
  awaits_servers_at_ = 8;
  const std::vector<float> group = Train(job, sync.name)[0];
  EXPECT_EQ(group, Center());
  EXPECT_NEAR(group[0], kTarget, 3);
  EXPECT_EQ(group.back(), 48);  // The center has the gradients of every step: 2 epochs of 24.
}

}  // namespace
}  // namespace hooke
