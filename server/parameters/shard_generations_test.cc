// A center goes on in a later generation of its job, with another number of groups (Shard::Succeed).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/reference_center.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Time kNow = absl::UnixEpoch();
constexpr absl::Duration kLease = absl::Seconds(20);
constexpr uint64_t kValues = 10;
constexpr uint64_t kParameters = 7;
constexpr uint64_t kBlocks = 3;

struct Generation {
  uint32_t groups = 1;
  uint32_t first_incarnation = 0;
  uint64_t first_step = 0;
  double first_epoch = 0;
  uint64_t steps_per_epoch = kReferenceStepsPerEpoch;
};

// 2 groups become 3, and then 1. Epochs have another length in each generation.
const std::vector<Generation> kGenerations = {{2}, {3, 5, 12, 2.5, 3}, {1, 9, 30, 11.25, 7}};

void SetGeneration(const Generation& generation, v1::JobSpecForShard& job) {
  job.set_groups(generation.groups);
  job.set_first_incarnation(generation.first_incarnation);
  job.set_first_step(generation.first_step);
  job.set_first_epoch(generation.first_epoch);
  job.set_steps_per_epoch(generation.steps_per_epoch);
}

// Has the center of `shard` go on by the plan of `request`, and attaches all groups.
void Succeed(const v1::AttachRequest& request, std::unique_ptr<Shard>& shard) {
  shard = Shard::Succeed(NextGeneration(shard->plan(), PlanShard(request, 4).value()).value(), *shard).value();
  for (uint32_t group = 0; group < request.job().groups(); ++group) {
    const Speaker speaker = {group, 0, request.job().first_incarnation() + group};
    const Shard::Attached attached = shard->Attach(kNow, speaker, kLease).value();
    EXPECT_EQ(attached.answer, AttachAnswer::kReady);
    EXPECT_EQ(attached.last_sequence, request.job().first_step());
  }
}

// A turn of one block, and its outcome.
struct TestTurn {
  TestTurn(Shard& shard, const Speaker& speaker, uint64_t sequence, uint64_t block, std::vector<float> sent)
      : values(std::move(sent)), answer(values.size()) {
    turn.exchange = {speaker, sequence, shard.BlockRange(block).begin};
    turn.values = values;
    turn.answer = absl::MakeSpan(answer);
    turn.done = [this](absl::Status status) { outcome = std::move(status); };
    if (std::optional<absl::Status> status = shard.Begin(turn); status.has_value()) outcome = std::move(status);
  }
  TestTurn(const TestTurn&) = delete;

  std::vector<float> values;
  std::vector<float> answer;
  Turn turn;
  std::optional<absl::Status> outcome;
};

v1::AttachRequest RuleRequest(const ReferenceRule& rule, const Generation& generation) {
  TestCenter center;
  center.values = kValues;
  v1::AttachRequest request = MakeAttachRequest(center);
  v1::JobSpecForShard& job = *request.mutable_job();
  SetRule(rule, job);
  SetGeneration(generation, job);
  job.set_parameters(kParameters);
  job.set_quorum(generation.groups);
  job.set_grace_seconds(10);
  return request;
}

// A center of kBlocks blocks under a rule that steps it, and what the reference makes of the same contributions.
class SteppedCenter {
 public:
  explicit SteppedCenter(ReferenceRule rule)
      : rule_(std::move(rule)),
        shard_(MakeTestShard(RuleRequest(rule_, kGenerations[0]), Ramp(0, kValues), kGenerations[0].groups)) {
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const Range range = shard_->BlockRange(block);
      const std::vector<float> values = Ramp(range.begin, range.size());
      blocks_.emplace_back(rule_, shard_->plan().BlockParameters(block),
                           std::vector<double>(values.begin(), values.end()));
    }
    Begin(kGenerations[0]);
  }

  void Succeed(const Generation& generation) {
    hooke::Succeed(RuleRequest(rule_, generation), shard_);
    for (ReferenceBlock& block : blocks_) {
      block.BeginGeneration(generation.first_step, generation.first_epoch, generation.steps_per_epoch);
    }
    Begin(generation);
  }

  // All groups exchange all blocks after `steps` more steps.
  void Exchange(uint64_t steps) {
    sequence_ += steps;
    for (uint64_t block = 0; block < kBlocks; ++block) {
      std::vector<std::unique_ptr<TestTurn>> turns;
      std::vector<ReferenceSent> all;
      for (uint32_t group = 0; group < generation_.groups; ++group) {
        const uint32_t start =
            std::max(1U, generation_.first_incarnation + (generation_.first_incarnation > 0) * group);
        const std::vector<float> sent = Ramp(sequence_ * (group + 1), shard_->BlockRange(block).size(), -3);
        all.push_back({sequence_, steps, std::vector<double>(sent.begin(), sent.end())});
        turns.push_back(std::make_unique<TestTurn>(*shard_, Speaker{group, 0, start}, sequence_, block, sent));
        if (shard_->plan().rule.traits.in_rounds) continue;
        // In the first exchange of a generation no contribution is stale. Later the other groups have come between.
        blocks_[block].StepAlone(all.back(), exchanges_ == 0 ? 0 : generation_.groups - 1, generation_.groups);
      }
      if (shard_->plan().rule.traits.in_rounds) blocks_[block].StepTogether(all, all.size(), 1);
      for (const auto& turn : turns) {
        ASSERT_TRUE(turn->outcome.has_value()) << "it waits";
        ASSERT_EQ(*turn->outcome, absl::OkStatus());
      }
    }
    ++exchanges_;
  }

  void ExpectTheReference() const {
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const Shard::BlockCopy copy = shard_->CopyBlock(block);
      EXPECT_EQ(copy.updates, blocks_[block].updates());
      for (uint64_t i = 0; i < copy.values.size(); ++i) {
        ASSERT_NEAR(copy.values[i], blocks_[block].values()[i], 1e-4) << "block " << block << ", value " << i;
      }
    }
  }

 private:
  void Begin(const Generation& generation) {
    generation_ = generation;
    sequence_ = generation.first_step;
    exchanges_ = 0;
  }

  const ReferenceRule rule_;
  std::unique_ptr<Shard> shard_;
  std::vector<ReferenceBlock> blocks_;
  Generation generation_;
  uint64_t sequence_ = 0;
  int exchanges_ = 0;  // In this generation.
};

// Values, momentum, moments and the learning rate go on as in a center whose groups never changed. A group's first
// contribution in a generation counts the steps since the first step of that generation.
TEST(ShardGenerations, GoOnLikeTheReference) {
  constexpr ReferenceMixing kMean = ReferenceMixing::kMeanOfGradients;
  constexpr ReferenceMixing kDistances = ReferenceMixing::kMeanOfDistances;
  std::vector<ReferenceRule> rules = {
      {"async momentum", v1::AveragingSpec::ASYNC, kMean, 0.05, 0.5},
      {"async adam", v1::AveragingSpec::ASYNC, kMean, 0.01, 0, false, true},
      {"ssp momentum", v1::AveragingSpec::SSP, kMean, 0.05, 0.5},
      {"downpour nesterov", v1::AveragingSpec::DOWNPOUR, ReferenceMixing::kSumOfGradients, 0.02, 0.5, true},
      {"sync momentum", v1::AveragingSpec::SYNC, kMean, 0.1, 0.9},
      {"sync adam", v1::AveragingSpec::SYNC, kMean, 0.05, 0, false, true},
      {"average", v1::AveragingSpec::AVERAGE, kDistances, 1},
      {"bmuf", v1::AveragingSpec::BMUF, kDistances, 1, 0.75},
      {"diloco", v1::AveragingSpec::DILOCO, kDistances, 0.7, 0.9, true},
  };
  for (ReferenceRule& rule : rules) {
    SCOPED_TRACE(rule.name);
    rule.cosine = rule.mixing != kDistances;
    if (rule.rule == v1::AveragingSpec::SSP) rule.staleness_bound = 10;
    SteppedCenter center(rule);
    for (size_t generation = 0; generation < kGenerations.size(); ++generation) {
      if (generation > 0) center.Succeed(kGenerations[generation]);
      for (const uint64_t steps : {2, 1, 3}) ASSERT_NO_FATAL_FAILURE(center.Exchange(steps));
      ASSERT_NO_FATAL_FAILURE(center.ExpectTheReference()) << "generation " << generation;
    }
  }
}

// Under the elastic rule each generation has its own alpha.
TEST(ShardGenerations, ElasticGoesOnWithAnotherAlpha) {
  std::unique_ptr<Shard> shard = MakeTestShard(MakeAttachRequest({}), Ramp(0, 10), 2);
  std::vector<float> expected = Ramp(0, 4);
  uint64_t sequence = 0;
  for (const auto& [groups, first_incarnation, alpha] :
       std::vector<std::tuple<uint32_t, uint32_t, float>>{{2, 0, 0.25f}, {3, 5, 0.125f}, {1, 9, 0.5f}}) {
    TestCenter center;
    center.groups = groups;
    center.alpha = alpha;
    center.first_incarnation = first_incarnation;
    center.first_step = first_incarnation > 0 ? sequence : 0;
    if (first_incarnation > 0) Succeed(MakeAttachRequest(center), shard);
    ++sequence;
    for (uint32_t group = 0; group < groups; ++group) {
      const uint32_t start = first_incarnation > 0 ? first_incarnation + group : 1;
      TestTurn turn(*shard, {group, 0, start}, sequence, 0, std::vector<float>(4, 2));
      ASSERT_EQ(turn.outcome, absl::OkStatus());
      for (float& value : expected) value += alpha * (2 - value);
    }
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(shard->CopyBlock(0).values[i], expected[i], 1e-6);
  }
  EXPECT_EQ(shard->CopyBlock(0).updates, 6u);
  EXPECT_EQ(shard->CopyBlock(2).values, Ramp(8, 2)) << "nobody has changed this block";
}

v1::AttachRequest RoundsRequest(const Generation& generation,
                                v1::AveragingSpec::Rule rule = v1::AveragingSpec::AVERAGE) {
  TestCenter center;
  center.values = 4;
  v1::AttachRequest request = MakeStepRequest(center, rule, 1);
  SetGeneration(generation, *request.mutable_job());
  request.mutable_job()->set_steps_per_epoch(100);
  request.mutable_job()->set_grace_seconds(10);
  request.mutable_job()->clear_quorum();
  if (rule == v1::AveragingSpec::SSP) request.mutable_job()->set_staleness_bound(1);
  return request;
}

// All calls of a start of the earlier generation are refused, whatever its group. The earlier generation's shard, which
// a caller may still hold, refuses them with the same text.
TEST(ShardGenerations, EarlierStartsAreRefused) {
  std::unique_ptr<Shard> shard = MakeTestShard(RoundsRequest({3}), std::vector<float>(4), 3);
  const std::unique_ptr<Shard> next =
      Shard::Succeed(NextGeneration(shard->plan(), PlanShard(RoundsRequest({1, 5}), 4).value()).value(), *shard)
          .value();
  for (Shard* each : {shard.get(), next.get()}) {
    for (const uint32_t group : {0, 2}) {
      const Speaker speaker = {group, 0, 1};
      TestTurn turn(*each, speaker, 1, 0, std::vector<float>(4, 1));
      const std::vector<absl::Status> refusals = {
          each->Attach(kNow, speaker, kLease).status(), *turn.outcome, each->TellPace(kNow, speaker, 1).status(),
          each->EndGroup(speaker, true), each->Rewind({speaker, 1, 0}, {1, 1, 1, 1})};
      for (const absl::Status& refusal : refusals) {
        EXPECT_EQ(refusal.code(), absl::StatusCode::kAborted) << refusal;
        EXPECT_THAT(std::string(refusal.message()), HasSubstr("a generation that is over"));
      }
    }
  }
  EXPECT_TRUE(shard->closed());
  EXPECT_FALSE(next->closed());
  EXPECT_THAT(next->CopyBlock(0).values, Each(0.0f));
  EXPECT_FALSE(next->CopyGroups().stop);
  EXPECT_EQ(next->CheckSpeaker({0, 0, 4}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(next->Attach(kNow, {1, 0, 6}, kLease).status().code(), absl::StatusCode::kInvalidArgument);
}

// With one group bmuf has no momentum, so its center has no state. With more groups the state begins with zeros.
TEST(ShardGenerations, AStateOfAnotherSizeBeginsWithZeros) {
  const auto bmuf = [](const Generation& generation, double momentum) {
    v1::AttachRequest request = RoundsRequest(generation, v1::AveragingSpec::BMUF);
    request.mutable_job()->mutable_optimizer()->set_momentum(momentum);
    return request;
  };
  std::unique_ptr<Shard> shard = MakeTestShard(bmuf({1}, 0), std::vector<float>(4), 1);
  EXPECT_EQ(TestTurn(*shard, {0, 0, 1}, 1, 0, std::vector<float>(4, 1)).outcome, absl::OkStatus());
  const std::vector<float> values = shard->CopyBlock(0).values;
  EXPECT_TRUE(shard->CopyBlock(0).state.empty());
  Succeed(bmuf({2, 5, 1}, 0.5), shard);
  EXPECT_EQ(shard->CopyBlock(0).values, values);
  EXPECT_EQ(shard->CopyBlock(0).state, std::vector<float>(4, 0));
  TestTurn one(*shard, {0, 0, 5}, 2, 0, std::vector<float>(4, 1));
  TestTurn other(*shard, {1, 0, 6}, 2, 0, std::vector<float>(4, 1));
  EXPECT_EQ(one.outcome, absl::OkStatus());
  EXPECT_EQ(shard->CopyBlock(0).state.size(), 4u);
  EXPECT_NE(shard->CopyBlock(0).state, std::vector<float>(4, 0));
  Succeed(bmuf({1, 9, 2}, 0), shard);
  EXPECT_TRUE(shard->CopyBlock(0).state.empty());
  EXPECT_EQ(TestTurn(*shard, {0, 0, 9}, 3, 0, std::vector<float>(4, 1)).outcome, absl::OkStatus());
}

// EndGeneration refuses all starts below its argument, even before the next generation's plan is known. For each group
// it returns the lowest sequence, over all blocks, of the group's last exchange.
TEST(ShardGenerations, AnEndedGenerationTakesNothingMore) {
  v1::AttachRequest request = RoundsRequest({3}, v1::AveragingSpec::ASYNC);
  request.mutable_layout()->mutable_parameters(0)->set_shape(0, 8);
  request.mutable_job()->set_parameters(8);
  std::unique_ptr<Shard> shard = MakeTestShard(request, std::vector<float>(8), 3);
  ASSERT_TRUE(shard->Attach(kNow, {1, 0, 4}, kLease).ok());
  const std::vector<float> ones(4, 1);
  EXPECT_EQ(TestTurn(*shard, {0, 0, 1}, 8, 0, ones).outcome, absl::OkStatus());
  EXPECT_EQ(TestTurn(*shard, {0, 0, 1}, 8, 1, ones).outcome, absl::OkStatus());
  EXPECT_EQ(TestTurn(*shard, {0, 0, 1}, 16, 0, ones).outcome, absl::OkStatus()) << "block 1 has not come";
  EXPECT_EQ(TestTurn(*shard, {1, 0, 4}, 7, 0, ones).outcome, absl::OkStatus());
  EXPECT_EQ(TestTurn(*shard, {1, 0, 4}, 7, 1, ones).outcome, absl::OkStatus());
  const std::vector<float> values = shard->CopyBlock(0).values;
  for (int i = 0; i < 2; ++i) {
    const std::vector<GroupReached> reached = shard->EndGeneration(5);
    ASSERT_EQ(reached.size(), 3u);
    EXPECT_EQ(reached[0].step, 8u);
    EXPECT_EQ(reached[0].incarnation, 1u);
    EXPECT_EQ(reached[1].step, 7u);
    EXPECT_EQ(reached[1].incarnation, 4u);
    EXPECT_EQ(reached[2].step, 0u);
    EXPECT_EQ(reached[2].incarnation, 0u) << "it has attached only";
    TestTurn late(*shard, {1, 0, 4}, 14, 0, ones);
    for (const absl::Status& refusal :
         {*late.outcome, shard->Attach(kNow, {1, 0, 4}, kLease).status(), shard->TellPace(kNow, {1, 0, 4}, 1).status(),
          shard->EndGroup({1, 0, 4}, true), shard->CheckSpeaker({1, 0, 4})}) {
      EXPECT_EQ(refusal.code(), absl::StatusCode::kAborted) << refusal;
      EXPECT_THAT(std::string(refusal.message()), HasSubstr("a generation that is over"));
    }
  }
  EXPECT_TRUE(shard->closed());
  EXPECT_EQ(shard->CheckSpeaker({1, 0, 5}).code(), absl::StatusCode::kNotFound) << "it attaches first";
  v1::AttachRequest next = request;
  SetGeneration({2, 5, 16}, *next.mutable_job());
  next.mutable_job()->set_steps_per_epoch(100);
  Succeed(next, shard);
  EXPECT_EQ(shard->CopyBlock(0).values, values);
  EXPECT_EQ(TestTurn(*shard, {1, 0, 6}, 17, 0, ones).outcome, absl::OkStatus());
}

// EndGeneration returns no steps for a shard whose initial values have not all come. Such a shard may replace one that
// was lost, so it cannot say how far the groups came.
TEST(ShardGenerations, ACenterWithoutValuesHasNoSay) {
  auto shard = Shard::Create(PlanShard(RoundsRequest({2}), 4).value()).value();
  ASSERT_EQ(shard->Attach(kNow, {1, 0, 1}, kLease)->answer, AttachAnswer::kInitialize);
  EXPECT_TRUE(shard->EndGeneration(5).empty());
  EXPECT_EQ(shard->Attach(kNow, {1, 0, 1}, kLease).status().code(), absl::StatusCode::kAborted);
}

// A turn that waits for other groups of its generation ends, with a text that says why.
TEST(ShardGenerations, WaitingTurnsEnd) {
  for (const auto rule : {v1::AveragingSpec::AVERAGE, v1::AveragingSpec::SSP}) {
    std::unique_ptr<Shard> shard = MakeTestShard(RoundsRequest({2}, rule), std::vector<float>(4), 2);
    TestTurn turn(*shard, {0, 0, 1}, 3, 0, std::vector<float>(4, 1));  // SSP: three steps ahead.
    ASSERT_FALSE(turn.outcome.has_value());
    Succeed(RoundsRequest({3, 5}, rule), shard);
    ASSERT_TRUE(turn.outcome.has_value());
    EXPECT_EQ(turn.outcome->code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(turn.outcome->message()), HasSubstr("a generation that is over"));
    // SSP has applied the contribution, and held the answer only.
    EXPECT_EQ(shard->CopyBlock(0).updates, rule == v1::AveragingSpec::SSP ? 1u : 0u);
  }
}

// In the first round all groups of the new generation are awaited, also one that has not attached.
TEST(ShardGenerations, TheFirstRoundAwaitsAllGroups) {
  std::unique_ptr<Shard> shard = MakeTestShard(RoundsRequest({1}), std::vector<float>(4), 1);
  const ShardPlan plan = NextGeneration(shard->plan(), PlanShard(RoundsRequest({2, 5, 40}), 4).value()).value();
  shard = Shard::Succeed(plan, *shard).value();
  ASSERT_TRUE(shard->Attach(kNow, {0, 0, 5}, kLease).ok());
  TestTurn first(*shard, {0, 0, 5}, 41, 0, std::vector<float>(4, 1));
  EXPECT_FALSE(first.outcome.has_value());
  ASSERT_TRUE(shard->Attach(kNow, {1, 0, 6}, kLease).ok());
  // A contribution of three steps weighs three times as much as one of one step: (1 + 3 x 5) / 4.
  TestTurn second(*shard, {1, 0, 6}, 43, 0, std::vector<float>(4, 5));
  EXPECT_EQ(first.outcome, absl::OkStatus());
  EXPECT_EQ(second.outcome, absl::OkStatus());
  EXPECT_THAT(shard->CopyBlock(0).values, Each(-4.0f));
}

// A job that is to stop stops, although its groups change. A group that had ended is awaited again.
TEST(ShardGenerations, StopsStayAndEndsDoNot) {
  std::unique_ptr<Shard> shard = MakeTestShard(RoundsRequest({2}), std::vector<float>(4), 2);
  ASSERT_TRUE(shard->EndGroup({1, 0, 1}, true).ok());
  Succeed(RoundsRequest({2, 5}), shard);
  EXPECT_TRUE(shard->TellPace(kNow, {0, 0, 5}, 0)->stops);
  EXPECT_THAT(shard->CopyGroups().ended, Each(0u));
  TestTurn turn(*shard, {0, 0, 5}, 1, 0, std::vector<float>(4, 1));
  EXPECT_FALSE(turn.outcome.has_value()) << "group 1 is awaited";
  TestTurn other(*shard, {1, 0, 6}, 1, 0, std::vector<float>(4, 1));
  EXPECT_EQ(turn.outcome, absl::OkStatus());
}

// Nobody waits for a group that has made the generation's last step, which is not a whole number of epochs.
TEST(ShardGenerations, TheLastStepIsStepsTotal) {
  std::unique_ptr<Shard> shard = MakeTestShard(RoundsRequest({1}), std::vector<float>(4), 1);
  v1::AttachRequest request = RoundsRequest({2, 5, 150});
  request.mutable_job()->set_steps_total(153);
  Succeed(request, shard);
  TestTurn last(*shard, {1, 0, 6}, 153, 0, std::vector<float>(4, 1));
  TestTurn one(*shard, {0, 0, 5}, 151, 0, std::vector<float>(4, 1));
  EXPECT_EQ(last.outcome, absl::OkStatus());
  TestTurn alone(*shard, {0, 0, 5}, 152, 0, std::vector<float>(4, 1));
  EXPECT_EQ(alone.outcome, absl::OkStatus()) << "it waits for a group that has ended";
}

// A sequence that is not after the generation's first step is refused, and so are values of an earlier step.
TEST(ShardGenerations, StepsBeforeTheFirstAreRefused) {
  std::unique_ptr<Shard> shard = MakeTestShard(RoundsRequest({2}), std::vector<float>(4), 2);
  Succeed(RoundsRequest({1, 5, 40}), shard);
  for (const uint64_t sequence : {0, 1, 40}) {
    TestTurn turn(*shard, {0, 0, 5}, sequence, 0, std::vector<float>(4, 1));
    EXPECT_EQ(turn.outcome->code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(turn.outcome->message()), HasSubstr("it is at least 41"));
  }
  EXPECT_EQ(shard->Rewind({{0, 0, 5}, 39, 0}, {1, 1, 1, 1}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(shard->Rewind({{0, 0, 5}, 40, 0}, {1, 1, 1, 1}), absl::OkStatus());
}

// A center without values has none in the next generation. Its first group sends them.
TEST(ShardGenerations, ACenterWithoutValuesBeginsAnew) {
  auto shard = Shard::Create(PlanShard(RoundsRequest({2}), 4).value()).value();
  ASSERT_EQ(shard->Attach(kNow, {1, 0, 1}, kLease)->answer, AttachAnswer::kInitialize);
  const ShardPlan plan = NextGeneration(shard->plan(), PlanShard(RoundsRequest({1, 5}), 4).value()).value();
  const auto next = Shard::Succeed(plan, *shard).value();
  EXPECT_EQ(shard->WriteInitial(kNow, {1, 0, 1}, 0, {1, 2, 3, 4}).code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(next->Attach(kNow, {0, 0, 5}, kLease)->answer, AttachAnswer::kInitialize);
  ASSERT_TRUE(next->WriteInitial(kNow, {0, 0, 5}, 0, {1, 2, 3, 4}).ok());
  ASSERT_TRUE(next->CompleteInitialize({0, 0, 5}).ok());
  EXPECT_EQ(next->Attach(kNow, {0, 0, 5}, kLease)->answer, AttachAnswer::kReady);
}

}  // namespace
}  // namespace hooke
