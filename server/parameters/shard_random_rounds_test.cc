// Rules with rounds at a shard over random schedules, compared with their formulas in double precision. Groups take
// part in a round or miss it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
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

constexpr uint64_t kInterval = 3;
constexpr absl::Duration kAtOnce = absl::Seconds(8);  // A round that lacks its quorum would wait for 10 s.

std::vector<ReferenceRule> Rules() {
  constexpr ReferenceMixing kGradients = ReferenceMixing::kMeanOfGradients;
  constexpr ReferenceMixing kDistances = ReferenceMixing::kMeanOfDistances;
  std::vector<ReferenceRule> rules = {
      {"sync", v1::AveragingSpec::SYNC, kGradients, 0.5},
      {"sync momentum", v1::AveragingSpec::SYNC, kGradients, 0.1, 0.9},
      {"sync nesterov", v1::AveragingSpec::SYNC, kGradients, 0.1, 0.9, true},
      {"sync adam", v1::AveragingSpec::SYNC, kGradients, 0.05, 0, false, true},
      {"average", v1::AveragingSpec::AVERAGE, kDistances, 1},
      {"bmuf", v1::AveragingSpec::BMUF, kDistances, 1, 0.75},
      {"bmuf nesterov", v1::AveragingSpec::BMUF, kDistances, 1, 0.75, true},
      {"slowmo", v1::AveragingSpec::SLOWMO, kDistances, 1, 0.7},
      {"diloco", v1::AveragingSpec::DILOCO, kDistances, 0.7, 0.9, true},
  };
  for (ReferenceRule& rule : rules) {
    rule.over_factor = rule.rule == v1::AveragingSpec::SLOWMO;
    rule.cosine = rule.over_factor || rule.rule == v1::AveragingSpec::SYNC;
  }
  return rules;
}

struct Shape {
  uint32_t groups = 1;
  uint32_t quorum = 1;
  uint64_t values = 4;  // The last one is a buffer.
};

// Returns a request. Without a grace window a round is complete as soon as it has its quorum.
v1::AttachRequest Request(const ReferenceRule& rule, const Shape& shape) {
  TestCenter center;
  center.groups = shape.groups;
  center.values = shape.values;
  v1::AttachRequest request = MakeAttachRequest(center);
  SetRule(rule, *request.mutable_job());
  request.mutable_job()->set_interval(kInterval);
  request.mutable_job()->set_parameters(shape.values - 1);
  request.mutable_job()->set_quorum(shape.quorum);
  request.mutable_job()->set_grace_seconds(0);
  return request;
}

bool WantsFresh(const ReferenceRule& rule) { return rule.mixing == ReferenceMixing::kMeanOfGradients; }

// The state of a group at one block. Rounds are numbered from 1.
struct Seat {
  uint64_t sequence = 0;  // The group's steps in its last exchange, even if that was dropped.
  bool begun = false;     // Whether this incarnation has exchanged the block.
  bool awaited = true;    // True from when it attaches or sends until a round has waited for it in vain.
  uint64_t missed = 0;    // The last round that waited for the group in vain.
  uint64_t answered = 0;  // The round whose center the group has.
};

// Returns the number of live groups. Contributors and groups that the round waits for in vain are live. Groups that
// were in other rounds, or missed one, since a contributor's last answer are live, too.
size_t LiveGroups(const std::vector<Seat>& seats, const std::vector<uint32_t>& who) {
  uint64_t since = UINT64_MAX;
  for (const uint32_t group : who) since = std::min(since, seats[group].answered);
  size_t live = 0;
  for (uint32_t group = 0; group < seats.size(); ++group) {
    const Seat& seat = seats[group];
    const bool is_in = std::find(who.begin(), who.end(), group) != who.end();
    if (is_in || seat.awaited || seat.answered > since || seat.missed > since) ++live;
  }
  return live;
}

// Expects equal values within 1e-4 of their size, because they were rounded to floats about ten times.
void ExpectNear(const std::vector<float>& are, const std::vector<double>& should) {
  for (size_t i = 0; i < are.size(); ++i) {
    ASSERT_NEAR(are[i], should[i], 1e-4 * (1 + std::abs(should[i]))) << "value " << i;
  }
}

std::vector<float> RandomValues(std::mt19937& random, uint64_t count) {
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) values.push_back(value(random));
  return values;
}

// Rounds of one block. In each round as many groups as the quorum take part, chosen at random.
class Rounds {
 public:
  Rounds(const ReferenceRule& rule, const Shape& shape, uint32_t seed)
      : rule_(rule),
        shape_(shape),
        random_(seed),
        shard_(MakeTestShard(Request(rule, shape), Ramp(0, shape.values), shape.groups)),
        block_(rule, shape.values - 1, Start(shape)),
        seats_(shape.groups),
        incarnations_(shape.groups, 1) {}

  void Round() {
    if (random_() % 8 == 0) {
      ASSERT_NO_FATAL_FAILURE(Restart(static_cast<uint32_t>(random_() % shape_.groups)));
    }
    if (WantsFresh(rule_)) {
      ASSERT_NO_FATAL_FAILURE(DropLate());
    }
    std::vector<uint32_t> who;
    for (uint32_t group = 0; group < shape_.groups; ++group) {
      if (!IsLate(group)) who.push_back(group);
    }
    std::shuffle(who.begin(), who.end(), random_);
    who.resize(shape_.quorum);
    missing += static_cast<int>(shape_.groups - shape_.quorum);
    ASSERT_NO_FATAL_FAILURE(Exchange(who));
    const Shard::BlockCopy copy = shard_->CopyBlock(0);
    ASSERT_EQ(copy.updates, block_.updates());
    ASSERT_NO_FATAL_FAILURE(ExpectNear(copy.values, block_.values()));
  }

  // How often groups were missing, exchanges dropped or repeated, and groups started again.
  int missing = 0, dropped = 0, repeats = 0, restarts = 0;

 private:
  static std::vector<double> Start(const Shape& shape) {
    const std::vector<float> values = Ramp(0, shape.values);
    return {values.begin(), values.end()};
  }

  // Starts the group again. It takes the present center.
  void Restart(uint32_t group) {
    ++restarts;
    ++incarnations_[group];
    ASSERT_TRUE(shard_->Attach(absl::UnixEpoch(), {group, 0, incarnations_[group]}, absl::Seconds(20)).ok());
    seats_[group].begun = false;
    seats_[group].awaited = true;
    seats_[group].answered = block_.updates();
  }

  // Returns whether the shard drops the group's next values because they are from an older center. False under rules
  // that do not drop late values. Also false for a group that has just begun, because the shard does not know its
  // center.
  bool IsLate(uint32_t group) const {
    return WantsFresh(rule_) && seats_[group].begun && seats_[group].answered != block_.updates();
  }

  // Lets late groups send until enough groups for a quorum are not late. Their values are dropped, and they get the
  // center.
  void DropLate() {
    uint32_t fresh = 0;
    for (uint32_t group = 0; group < shape_.groups; ++group) fresh += IsLate(group) ? 0 : 1;
    for (uint32_t group = 0; group < shape_.groups; ++group) {
      if (!IsLate(group) || (fresh >= shape_.quorum && random_() % 2 == 0)) continue;
      ++dropped;
      ++fresh;
      Advance(group);
      std::vector<float> answer;
      Send(group, RandomValues(random_, shape_.values), 1, answer);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(answer, block_.values()));
      NoteAnswer(group);
    }
  }

  uint64_t Advance(uint32_t group) {
    const uint64_t steps = 1 + random_() % (kInterval + 1);
    seats_[group].sequence += steps;
    return steps;
  }

  void NoteAnswer(uint32_t group) {
    seats_[group].begun = seats_[group].awaited = true;
    seats_[group].answered = block_.updates();
  }

  // Lets these groups exchange at the same time. Some of them repeat their exchange after the answer.
  void Exchange(const std::vector<uint32_t>& who) {
    std::vector<ReferenceSent> sent;
    std::vector<std::vector<float>> values, answers(who.size());
    std::vector<int> times;
    for (const uint32_t group : who) {
      const uint64_t steps = Advance(group);
      values.push_back(RandomValues(random_, shape_.values));
      sent.push_back({seats_[group].sequence, steps, {values.back().begin(), values.back().end()}});
      times.push_back(random_() % 3 == 0 ? 2 : 1);
      repeats += times.back() - 1;
    }
    std::vector<std::thread> threads;
    threads.reserve(who.size());
    for (size_t i = 0; i < who.size(); ++i) {
      threads.emplace_back([&, i] { Send(who[i], values[i], times[i], answers[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    block_.StepTogether(sent, LiveGroups(seats_, who), kInterval);
    for (Seat& seat : seats_) {
      if (!std::exchange(seat.awaited, false)) continue;
      seat.missed = block_.updates();  // Contributors get the same number as `answered`.
    }
    for (size_t i = 0; i < who.size(); ++i) {
      NoteAnswer(who[i]);
      ASSERT_NO_FATAL_FAILURE(ExpectNear(answers[i], block_.values()));
      ASSERT_EQ(answers[i], answers[0]) << "all groups have the same bits";
    }
  }

  // Sends the values `times` times, and checks that the answers come quickly.
  void Send(uint32_t group, const std::vector<float>& values, int times, std::vector<float>& answer) const {
    const absl::Time begin = absl::Now();
    answer.assign(values.size(), 0);
    const BlockExchange id = {{group, 0, incarnations_[group]}, seats_[group].sequence, 0};
    for (; times > 0; --times) EXPECT_EQ(shard_->ApplyBlock(id, values, absl::MakeSpan(answer)), absl::OkStatus());
    EXPECT_LT(absl::Now() - begin, kAtOnce) << "group " << group << " has waited";
  }

  const ReferenceRule rule_;
  const Shape shape_;
  std::mt19937 random_;
  const std::unique_ptr<Shard> shard_;
  ReferenceBlock block_;
  std::vector<Seat> seats_;
  std::vector<uint32_t> incarnations_;
};

// There are a hundred schedules of one to eight groups for every rule. A random part of the groups, sometimes all, is
// in each round, with more or fewer steps than an interval. The center follows the formulas for the size of a round,
// its weights and its momentum, also with groups that missed rounds or were started again. Under sync late gradients do
// not count.
TEST(ShardRandomRounds, FollowTheFormulas) {
  for (const ReferenceRule& rule : Rules()) {
    int missing = 0, dropped = 0, repeats = 0, restarts = 0;
    for (uint32_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(rule.name + ", seed " + std::to_string(seed));
      const uint32_t groups = seed % 8 + 1;
      Rounds rounds(rule, {groups, seed / 8 % groups + 1, 4}, seed);
      for (int round = 0; round < 20; ++round) ASSERT_NO_FATAL_FAILURE(rounds.Round()) << "round " << round;
      missing += rounds.missing;
      dropped += rounds.dropped;
      repeats += rounds.repeats;
      restarts += rounds.restarts;
    }
    EXPECT_GT(missing, 1000) << rule.name;
    EXPECT_GT(repeats, 500) << rule.name;
    EXPECT_GT(restarts, 100) << rule.name;
    EXPECT_EQ(dropped > 300, WantsFresh(rule)) << rule.name;
  }
}

// Three blocks, with rounds of one group each. While a group is in the middle of its exchange, others begin theirs,
// overtake it, and end.
class Interleaved {
 public:
  Interleaved(const ReferenceRule& rule, const Shape& shape, uint32_t seed)
      : rule_(rule), shape_(shape), random_(seed), groups_(shape.groups) {
    shard_ = MakeTestShard(Request(rule, shape), Ramp(0, shape.values), shape.groups);
    for (uint64_t block = 0; block < shard_->blocks(); ++block) {
      const Range range = shard_->BlockRange(block);
      const std::vector<float> values = Ramp(range.begin, range.size());
      const uint64_t parameters = std::min(range.end, shape.values - 1) - range.begin;
      blocks_.emplace_back(rule, parameters, std::vector<double>(values.begin(), values.end()));
      seats_.emplace_back(shape.groups);
      gone_on_.push_back(0);
    }
  }

  // Lets a random group send the next block of its exchange, or the first block of its next exchange.
  void Step() {
    const uint32_t group = static_cast<uint32_t>(random_() % shape_.groups);
    Exchange& own = groups_[group];
    if (own.block == 0) {
      own.steps = 1 + random_() % (kInterval + 1);
      own.sequence += own.steps;
      own.values = RandomValues(random_, shape_.values);
    }
    Expect(group);
    const Range range = shard_->BlockRange(own.block);
    const auto values = absl::MakeConstSpan(own.values).subspan(range.begin, range.size());
    std::vector<float> answer(range.size());
    for (int times = random_() % 3 == 0 ? 2 : 1; times > 0; --times) {
      const BlockExchange id = {{group, 0, 1}, own.sequence, range.begin};
      ASSERT_EQ(shard_->ApplyBlock(id, values, absl::MakeSpan(answer)), absl::OkStatus());
      ASSERT_NO_FATAL_FAILURE(ExpectNear(answer, blocks_[own.block].values()));
    }
    ASSERT_EQ(shard_->CopyBlock(own.block).updates, blocks_[own.block].updates());
    own.block = (own.block + 1) % blocks_.size();
  }

  // How many exchanges were dropped as a whole, and how many single blocks of other exchanges were dropped.
  int dropped_whole = 0, dropped_blocks = 0;

 private:
  struct Exchange {
    uint64_t sequence = 0, steps = 0;
    std::vector<float> values;
    uint64_t block = 0;          // The next block to send.
    bool drop = false;           // Whether the whole exchange is dropped.
    uint64_t round = 0;          // The round at the exchange's first block.
    std::vector<uint32_t> live;  // The groups that were live in that round.
  };

  // Changes the expected values as the formulas say, for the group's next block.
  void Expect(uint32_t group) {
    Exchange& own = groups_[group];
    ReferenceBlock& block = blocks_[own.block];
    Seat& seat = seats_[own.block][group];
    // Late gradients are dropped. If an exchange begins late, the whole exchange is dropped. Otherwise only the blocks
    // are dropped at which a later exchange has overtaken it.
    const bool overtaken = own.block > 0 && gone_on_[own.block] > own.round;
    if (own.block == 0) {
      own.drop = WantsFresh(rule_) && seat.begun && seat.answered != block.updates();
      dropped_whole += own.drop ? 1 : 0;
    } else if (WantsFresh(rule_) && !own.drop && overtaken) {
      ++dropped_blocks;
    }
    const std::vector<uint32_t> live = Live(group);
    if (!own.drop && !(WantsFresh(rule_) && overtaken)) {
      const Range range = shard_->BlockRange(own.block);
      const auto sent = absl::MakeConstSpan(own.values).subspan(range.begin, range.size());
      block.StepTogether({{own.sequence, own.steps, {sent.begin(), sent.end()}}}, live.size(), kInterval);
      if (own.block == 0) {
        own.round = block.updates();
        own.live = live;
        for (uint32_t other = 0; other < shape_.groups; ++other) {
          if (other != group && std::exchange(seats_[0][other].awaited, false)) seats_[0][other].missed = own.round;
        }
      }
      gone_on_[own.block] = std::max(gone_on_[own.block], own.round);
    }
    seat.begun = true;
    seat.answered = block.updates();
    seats_[0][group].awaited = true;  // A group is awaited whichever block it sends.
  }

  // Returns the live groups for the group's next block, including those that were live at the exchange's first block.
  std::vector<uint32_t> Live(uint32_t group) const {
    const Exchange& own = groups_[group];
    const std::vector<Seat>& seats = seats_[own.block];
    std::vector<uint32_t> live;
    for (uint32_t other = 0; other < shape_.groups; ++other) {
      bool is_live = other == group || seats[other].answered > seats[group].answered;
      if (own.block == 0) {
        is_live = is_live || seats[other].awaited || seats[other].missed > seats[group].answered;
      } else {
        is_live = is_live || std::find(own.live.begin(), own.live.end(), other) != own.live.end();
      }
      if (is_live) live.push_back(other);
    }
    return live;
  }

  const ReferenceRule rule_;
  const Shape shape_;
  std::mt19937 random_;
  std::unique_ptr<Shard> shard_;
  std::vector<ReferenceBlock> blocks_;
  std::vector<std::vector<Seat>> seats_;  // Indexed by block, then group. `awaited` is valid only at block 0.
  // One number for each block: the largest Exchange::round of the exchanges that have passed the block.
  std::vector<uint64_t> gone_on_;
  std::vector<Exchange> groups_;
};

// Groups have rounds of their own at three blocks. In a hundred schedules of one to eight groups, every rule follows
// its formulas.
TEST(ShardRandomRounds, GroupsInRoundsOfTheirOwnFollowTheFormulas) {
  for (const ReferenceRule& rule : Rules()) {
    int dropped_whole = 0, dropped_blocks = 0;
    for (uint32_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(rule.name + ", seed " + std::to_string(seed));
      const uint32_t groups = seed % 8 + 1;
      Interleaved interleaved(rule, {groups, 1, 10}, seed);
      for (int step = 0; step < 200; ++step) ASSERT_NO_FATAL_FAILURE(interleaved.Step()) << "step " << step;
      dropped_whole += interleaved.dropped_whole;
      dropped_blocks += interleaved.dropped_blocks;
    }
    EXPECT_EQ(dropped_whole > 500, WantsFresh(rule)) << rule.name;
    EXPECT_EQ(dropped_blocks > 50, WantsFresh(rule)) << rule.name;
  }
}

}  // namespace
}  // namespace hooke
