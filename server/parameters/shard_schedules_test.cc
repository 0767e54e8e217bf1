// Rules in which each group steps the center by itself, at a shard over random schedules. Center and groups are
// compared with formulas in double precision. shard_elastic_test.cc has the elastic rule.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/reference_center.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr uint64_t kValues = 10;
constexpr uint64_t kParameters = 7;  // The blocks have 4 parameters; 3 parameters and a buffer; and 2 buffers.
constexpr uint64_t kBlocks = 3;
// The bound on staleness. It is more than the 3 steps of the longest exchange, so some group may always go on.
constexpr uint64_t kBound = 4;
constexpr absl::Duration kGrace = absl::Seconds(10);
// Less than the grace window. A call within this time has not waited out the window.
constexpr absl::Duration kAtOnce = absl::Seconds(8);

std::vector<ReferenceRule> Rules() {
  constexpr ReferenceMixing kMean = ReferenceMixing::kMeanOfGradients;
  constexpr ReferenceMixing kSum = ReferenceMixing::kSumOfGradients;
  std::vector<ReferenceRule> rules = {
      {"async", v1::AveragingSpec::ASYNC, kMean, 0.05},
      {"async by staleness", v1::AveragingSpec::ASYNC, kMean, 0.05},
      {"async momentum", v1::AveragingSpec::ASYNC, kMean, 0.05, 0.5},
      {"async nesterov by staleness", v1::AveragingSpec::ASYNC, kMean, 0.05, 0.5, true},
      {"async adam", v1::AveragingSpec::ASYNC, kMean, 0.01, 0, false, true},
      {"ssp", v1::AveragingSpec::SSP, kMean, 0.05},
      {"ssp momentum by staleness", v1::AveragingSpec::SSP, kMean, 0.05, 0.5},
      {"ssp adam", v1::AveragingSpec::SSP, kMean, 0.01, 0, false, true},
      {"downpour", v1::AveragingSpec::DOWNPOUR, kSum, 0.02},
      {"downpour momentum", v1::AveragingSpec::DOWNPOUR, kSum, 0.02, 0.5},
      {"downpour adam by staleness", v1::AveragingSpec::DOWNPOUR, kSum, 0.01, 0, false, true},
  };
  for (ReferenceRule& rule : rules) {
    rule.cosine = true;
    if (rule.name.find("by staleness") != std::string::npos) rule.staleness_power = 0.5;
    if (rule.rule == v1::AveragingSpec::SSP) rule.staleness_bound = kBound;
  }
  return rules;
}

v1::AttachRequest Request(const ReferenceRule& rule, uint32_t groups) {
  TestCenter center;
  center.groups = groups;
  center.values = kValues;
  v1::AttachRequest request = MakeAttachRequest(center);
  SetRule(rule, *request.mutable_job());
  request.mutable_job()->set_parameters(kParameters);
  request.mutable_job()->set_grace_seconds(absl::ToDoubleSeconds(kGrace));
  return request;
}

// The state of a group at one block.
struct GroupBlock {
  uint64_t applied = 0;  // How many steps the group had done at its last exchange of the block.
  bool begun = false;    // This incarnation of the group has exchanged the block.
  uint64_t seen = 0;     // The center's updates at the group's last answer.
};

// A group's actual state, and the state that the formula gives.
struct Group {
  Speaker speaker;
  std::vector<float> x, anchor, sent;  // `anchor`: the group's last copy of the center.
  std::vector<double> expected, expected_anchor, expected_sent;
  uint64_t start = 0;  // The group's steps when this incarnation began.
  uint64_t sequence = 0;
  std::vector<uint64_t> open;      // The exchange's blocks without an answer yet; the next one is last.
  std::vector<uint64_t> answered;  // The exchange's blocks with an answer.
  std::vector<GroupBlock> blocks = std::vector<GroupBlock>(kBlocks);
  // The group's steps as the bound counts them. A group that joins late counts as if it began where the slowest group
  // is.
  uint64_t said = 0;
  uint64_t head_start = 0;
};

// One group after another acts. It trains, exchanges its blocks in any order, loses answers and sends the block again,
// or repeats an exchange that was answered. It may also send an exchange that is too old, or be started again in the
// middle of an exchange.
class Schedule {
 public:
  Schedule(const ReferenceRule& rule, uint32_t seed, uint32_t groups) : rule_(rule), random_(seed), groups_(groups) {
    shard_ = MakeTestShard(Request(rule, groups), Ramp(0, kValues), groups);
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const Range range = shard_->BlockRange(block);
      const std::vector<float> values = Ramp(range.begin, range.size());
      const uint64_t parameters = std::min(range.end, kParameters) - std::min(range.begin, kParameters);
      blocks_.emplace_back(rule, parameters, std::vector<double>(values.begin(), values.end()));
    }
    for (uint32_t i = 0; i < groups; ++i) {
      groups_[i].speaker = {i, 0, 1};
      Begin(groups_[i]);
    }
  }

  // Lets a random group act, in one of the ways that the class describes.
  void Step() {
    Group& group = groups_[random_() % groups_.size()];
    const uint32_t what = random_() % 40;
    if (what == 0) {
      Restart(group);
    } else if (what < 3) {
      SendOld(group);
    } else if (what < 6 && !group.answered.empty()) {
      const uint64_t block = group.answered[random_() % group.answered.size()];
      if (IsWithinBound(group, block)) Exchange(group, block);
    } else if (group.open.empty()) {
      Train(group);
    } else {
      ExchangeNext(group);
    }
  }

  // Compares with the formula. Values that were rounded to floats a few hundred times must be within 1e-4 of their
  // size.
  void ExpectTheFormula() const {
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const Shard::BlockCopy copy = shard_->CopyBlock(block);
      ASSERT_EQ(copy.updates, blocks_[block].updates()) << "block " << block;
      for (uint64_t i = 0; i < copy.values.size(); ++i) ExpectNear(copy.values[i], blocks_[block].values()[i]);
    }
    for (const Group& group : groups_) {
      for (uint64_t i = 0; i < kValues; ++i) ExpectNear(group.x[i], group.expected[i]);
    }
  }

  // How often each kind of event has happened.
  int exchanges = 0, losses = 0, repeats = 0, restarts = 0, refused = 0, held_back = 0;

 private:
  static void ExpectNear(float is, double should) { ASSERT_NEAR(is, should, 1e-4 * (1 + std::abs(should))); }

  // Starts the group from the center's values.
  void Begin(Group& group) {
    group.x.clear();
    group.expected.clear();
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const std::vector<float> values = shard_->CopyBlock(block).values;
      const std::vector<double>& expected = blocks_[block].values();
      group.x.insert(group.x.end(), values.begin(), values.end());
      group.expected.insert(group.expected.end(), expected.begin(), expected.end());
      group.blocks[block].begun = false;
    }
    group.anchor = group.x;
    group.expected_anchor = group.expected;
    group.open.clear();
    group.answered.clear();
  }

  // Starts a group again. It goes on from the block that is furthest behind.
  void Restart(Group& group) {
    ++restarts;
    ++group.speaker.incarnation;
    const auto attached = shard_->Attach(absl::UnixEpoch(), group.speaker, absl::Seconds(20));
    ASSERT_TRUE(attached.ok()) << attached.status();
    group.start = group.blocks[0].applied;
    for (const GroupBlock& block : group.blocks) group.start = std::min(group.start, block.applied);
    ASSERT_EQ(attached->last_sequence, group.start);
    group.sequence = group.said = group.start;
    group.head_start = 0;
    uint64_t slowest = UINT64_MAX;
    for (const Group& other : groups_) {
      if (&other != &group) slowest = std::min(slowest, other.said + other.head_start);
    }
    if (slowest != UINT64_MAX && slowest > group.start) group.head_start = slowest - group.start;
    Begin(group);
  }

  // Trains for some steps and begins an exchange. Gradients pull parameters to a random point near 0; buffers move at
  // random.
  void Train(Group& group) {
    std::normal_distribution<float> place(0, 0.5f);
    const uint64_t steps = 1 + random_() % 3;
    group.sequence += steps;
    group.sent.assign(kValues, 0);
    group.expected_sent.assign(kValues, 0);
    for (uint64_t i = 0; i < kValues; ++i) {
      for (uint64_t step = 0; step < steps; ++step) {
        const float pull = place(random_);
        if (i < kParameters) {
          group.sent[i] += 0.3f * group.x[i] + pull;
          group.expected_sent[i] += double{0.3f} * group.expected[i] + pull;
        } else {
          group.x[i] += pull;
          group.expected[i] += pull;
        }
      }
      if (i < kParameters) continue;
      group.sent[i] = group.anchor[i] - group.x[i];
      group.expected_sent[i] = group.expected_anchor[i] - group.expected[i];
    }
    group.open = {0, 1, 2};
    group.answered.clear();
    std::shuffle(group.open.begin(), group.open.end(), random_);
  }

  // Exchanges the next block. One answer of three is lost; the group then sends the block again later.
  void ExchangeNext(Group& group) {
    const uint64_t block = group.open.back();
    if (!IsWithinBound(group, block)) {
      ++held_back;  // The group would wait, so another group acts.
      return;
    }
    Count(group, block);
    if (random_() % 3 == 0) {
      ++losses;
      std::vector<float> lost;
      ASSERT_NO_FATAL_FAILURE(Send(group, block, lost));
      std::shuffle(group.open.begin(), group.open.end(), random_);
      return;
    }
    ASSERT_NO_FATAL_FAILURE(Exchange(group, block));
    group.open.pop_back();
    group.answered.push_back(block);
  }

  // Returns whether this group is ahead of each other group at the block by no more than the bound.
  bool IsWithinBound(const Group& group, uint64_t block) const {
    if (rule_.staleness_bound == 0) return true;
    for (const Group& other : groups_) {
      if (&other == &group) continue;
      const uint64_t behind = other.blocks[block].applied + other.head_start;
      if (behind + rule_.staleness_bound < group.sequence + group.head_start) return false;
    }
    return true;
  }

  // Steps the expected center, once for each exchange.
  void Count(Group& group, uint64_t block) {
    GroupBlock& own = group.blocks[block];
    if (own.begun && own.applied == group.sequence) return;
    ++exchanges;
    const Range range = shard_->BlockRange(block);
    ReferenceSent sent;
    sent.sequence = group.sequence;
    sent.steps = group.sequence - (own.begun ? own.applied : group.start);
    sent.values = {group.expected_sent.begin() + static_cast<std::ptrdiff_t>(range.begin),
                   group.expected_sent.begin() + static_cast<std::ptrdiff_t>(range.end)};
    // If a group has just begun, the shard does not know which center it has read.
    const uint64_t staleness = own.begun ? blocks_[block].updates() - own.seen : 0;
    blocks_[block].StepAlone(sent, staleness, static_cast<uint32_t>(groups_.size()));
  }

  // Sends the block, for the first time or again. The group takes the answer, which is the present center.
  void Exchange(Group& group, uint64_t block) {
    std::vector<float> answer;
    ASSERT_NO_FATAL_FAILURE(Send(group, block, answer));
    const Range range = shard_->BlockRange(block);
    for (uint64_t i = 0; i < range.size(); ++i) {
      group.x[range.begin + i] = group.anchor[range.begin + i] = answer[i];
      group.expected[range.begin + i] = group.expected_anchor[range.begin + i] = blocks_[block].values()[i];
    }
  }

  // Sends a block. The answer must come at once and be the center that the formula gives.
  void Send(Group& group, uint64_t block, std::vector<float>& answer) {
    GroupBlock& own = group.blocks[block];
    const Range range = shard_->BlockRange(block);
    answer.assign(range.size(), 0);
    const auto values = absl::MakeConstSpan(group.sent).subspan(range.begin, range.size());
    const BlockExchange id = {group.speaker, group.sequence, range.begin};
    const absl::Time begin = absl::Now();
    ASSERT_EQ(shard_->ApplyBlock(id, values, absl::MakeSpan(answer)), absl::OkStatus());
    ASSERT_LT(absl::Now() - begin, kAtOnce) << "somebody was waited for, block " << block;
    for (uint64_t i = 0; i < range.size(); ++i) ExpectNear(answer[i], blocks_[block].values()[i]);
    if (own.begun && own.applied == group.sequence) ++repeats;
    own = {group.sequence, true, blocks_[block].updates()};
    group.said = std::max(group.said, group.sequence);
  }

  // Sends an earlier exchange of this incarnation, and an exchange of an earlier incarnation. The shard refuses them
  // and does not change.
  void SendOld(Group& group) {
    const uint64_t block = random_() % kBlocks;
    const Range range = shard_->BlockRange(block);
    const std::vector<float> values(range.size(), 1);
    std::vector<float> answer(range.size());
    BlockExchange id = {group.speaker, group.blocks[block].applied, range.begin};
    if (group.blocks[block].begun && id.sequence > 1) {
      ++refused;
      --id.sequence;
      const absl::Status status = shard_->ApplyBlock(id, values, absl::MakeSpan(answer));
      ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    }
    if (id.speaker.incarnation > 1) {
      --id.speaker.incarnation;
      id.sequence = group.sequence + 1;
      const absl::Status status = shard_->ApplyBlock(id, values, absl::MakeSpan(answer));
      ASSERT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    }
  }

  const ReferenceRule rule_;
  std::mt19937 random_;
  std::unique_ptr<Shard> shard_;
  std::vector<ReferenceBlock> blocks_;
  std::vector<Group> groups_;
};

// In a hundred schedules of one to eight groups for every rule, center and groups follow the formula. Blocks come in
// any order, answers are lost, exchanges are repeated and groups are started again. Under ssp no group within the bound
// waits.
TEST(ShardSchedules, FollowTheFormulas) {
  for (const ReferenceRule& rule : Rules()) {
    int exchanges = 0, losses = 0, repeats = 0, restarts = 0, refused = 0, held_back = 0;
    for (uint32_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(rule.name + ", seed " + std::to_string(seed));
      Schedule schedule(rule, seed, seed % 8 + 1);
      for (int event = 0; event < 300; ++event) {
        ASSERT_NO_FATAL_FAILURE(schedule.Step()) << "event " << event;
        if (event % 10 == 9) {
          ASSERT_NO_FATAL_FAILURE(schedule.ExpectTheFormula()) << "event " << event;
        }
      }
      exchanges += schedule.exchanges;
      losses += schedule.losses;
      repeats += schedule.repeats;
      restarts += schedule.restarts;
      refused += schedule.refused;
      held_back += schedule.held_back;
    }
    EXPECT_GT(exchanges, 3000) << rule.name;
    EXPECT_GT(losses, 1000) << rule.name;
    EXPECT_GT(repeats, 1000) << rule.name;
    EXPECT_GT(restarts, 100) << rule.name;
    EXPECT_GT(refused, 100) << rule.name;
    if (rule.staleness_bound > 0) {
      EXPECT_GT(held_back, 100) << rule.name;
    }
  }
}

// Makes one exchange of the first block, with all values 1. Returns the answer's first value.
float SendOnes(Shard& shard, uint32_t group, uint64_t sequence) {
  const std::vector<float> values(4, 1);
  std::vector<float> answer(4);
  const absl::Time begin = absl::Now();
  EXPECT_EQ(shard.ApplyBlock({{group, 0, 1}, sequence, 0}, values, absl::MakeSpan(answer)), absl::OkStatus());
  EXPECT_LT(absl::Now() - begin, kAtOnce) << "the grace window was waited for: group " << group;
  return answer[0];
}

// A group further ahead than the bound is answered once all groups that are too far behind have come within the bound.
// They need not come level. The answer includes the values that they have sent.
TEST(ShardSchedules, TheBoundHoldsUntilAllAreCloser) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const uint32_t groups = seed % 7 + 2;
    ReferenceRule rule;
    rule.name = "ssp";
    rule.rule = v1::AveragingSpec::SSP;
    rule.rate = 0.5;
    rule.staleness_bound = kBound;
    const auto shard = MakeTestShard(Request(rule, groups), Ramp(0, kValues), groups);
    const uint64_t bar = 2 + random() % (kBound - 1);  // The step that the groups behind must reach.
    std::vector<uint32_t> behind;
    for (uint32_t group = 1; group < groups; ++group) {
      const uint64_t at = group == 1 ? 1 : 1 + random() % kBound;
      SendOnes(*shard, group, at);
      if (at < bar) behind.push_back(group);
    }
    std::shuffle(behind.begin(), behind.end(), random);
    const uint64_t before = shard->updates();
    float answer = 0;
    std::thread fast([&] { answer = SendOnes(*shard, 0, bar + kBound); });
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    // The fast group's own step is applied at once. Its thread keeps the block's mutex until it waits or is answered.
    while (shard->updates() == before && absl::Now() < give_up) std::this_thread::yield();
    for (const uint32_t group : behind) SendOnes(*shard, group, bar);
    fast.join();
    EXPECT_EQ(answer, shard->CopyBlock(0).values[0]) << "answered before the last of those that were behind had come";
  }
}

}  // namespace
}  // namespace hooke
