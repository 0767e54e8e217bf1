// The elastic rule at a shard over random schedules, compared with its formula in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr uint64_t kValues = 10;
constexpr uint64_t kBlocks = 3;  // Blocks of 4, 4 and 2 values.

// A group's actual state, and the state that the formula gives.
struct Group {
  Speaker speaker;
  std::vector<float> x;
  std::vector<double> expected;
  // The exchange under way: the values that it sends, and the blocks that have no answer yet. The next block to send is
  // last.
  uint64_t sequence = 0;
  std::vector<float> sent;
  std::vector<double> expected_sent;
  std::vector<uint64_t> open;
  // For each block: the last exchange that the expected center includes.
  std::vector<uint64_t> counted;
  // For each block: the answer that the formula gives to that exchange.
  std::vector<std::vector<double>> expected_answers;
  std::vector<std::vector<float>> answers;
};

// Groups train, and exchange their blocks in any order. They lose answers and send the block again, repeat exchanges
// that were answered, and are started again in the middle of an exchange.
class Schedule {
 public:
  Schedule(uint32_t seed, uint32_t groups) : random_(seed) {
    center_.groups = groups;
    center_.values = kValues;
    center_.alpha = 0.9 / (groups + 1);
    shard_ = MakeTestShard(MakeAttachRequest(center_), Ramp(0, kValues), groups);
    for (const float value : Ramp(0, kValues)) expected_center_.push_back(value);
    for (uint32_t i = 0; i < groups; ++i) {
      groups_.emplace_back();
      groups_.back().speaker = {i, 0, 1};
      Start(groups_.back());
    }
  }

  // Lets a random group act: train and begin an exchange, exchange a block, repeat one, or start again.
  void Step() {
    Group& group = groups_[random_() % groups_.size()];
    if (group.open.empty()) {
      Train(group);
    } else if (random_() % 40 == 0) {
      ++restarts;
      ++group.speaker.incarnation;
      ASSERT_TRUE(shard_->Attach(absl::UnixEpoch(), group.speaker, absl::Seconds(20)).ok());
      Start(group);
    } else {
      Exchange(group);
    }
  }

  // Compares center and groups with the formula. The tolerance is 1e-4, for values up to about ten.
  void ExpectTheFormula() const {
    for (uint64_t i = 0; i < kValues; ++i) {
      ASSERT_NEAR(CenterAt(i), expected_center_[i], 1e-4) << "value " << i;
      for (const Group& group : groups_) ASSERT_NEAR(group.x[i], group.expected[i], 1e-4) << "value " << i;
    }
  }

  // How often answers were lost, exchanges repeated, and groups started again.
  int losses = 0, repeats = 0, restarts = 0;

 private:
  double CenterAt(uint64_t i) const { return shard_->CopyBlock(i / 4).values[i % 4]; }

  // Starts the group from the center's values.
  void Start(Group& group) {
    group.sequence = 0;
    group.open.clear();
    group.x.clear();
    for (uint64_t i = 0; i < kValues; ++i) group.x.push_back(static_cast<float>(CenterAt(i)));
    group.expected = expected_center_;
    group.counted.assign(kBlocks, 0);
    group.expected_answers.assign(kBlocks, {});
    group.answers.assign(kBlocks, {});
  }

  // Trains for some steps and begins an exchange.
  void Train(Group& group) {
    std::normal_distribution<float> step(0, 0.3f);
    for (uint64_t i = 0; i < kValues; ++i) {
      const float moved = group.x[i] + step(random_);
      group.expected[i] += double{moved} - group.x[i];
      group.x[i] = moved;
    }
    group.sequence += 1 + random_() % 5;
    group.sent = group.x;
    group.expected_sent = group.expected;
    group.open = {0, 1, 2};
    std::shuffle(group.open.begin(), group.open.end(), random_);
  }

  // Exchanges the next block. One answer of three is lost; the group then sends the block again later.
  void Exchange(Group& group) {
    const uint64_t block = group.open.back();
    const Range range = shard_->BlockRange(block);
    CountOnce(group, block);
    for (int times = random_() % 4 == 0 ? 2 : 1; times > 0; --times) {
      ASSERT_NO_FATAL_FAILURE(Send(group, block));
    }
    if (random_() % 3 == 0) {
      ++losses;
      std::shuffle(group.open.begin(), group.open.end(), random_);
      return;
    }
    for (uint64_t i = 0; i < range.size(); ++i) {
      group.x[range.begin + i] -= group.answers[block][i];
      group.expected[range.begin + i] -= group.expected_answers[block][i];
    }
    group.open.pop_back();
  }

  // Moves the expected center by the formula, once for each exchange: d = alpha (x - c); c <- c + d.
  void CountOnce(Group& group, uint64_t block) {
    if (group.counted[block] == group.sequence) return;
    const Range range = shard_->BlockRange(block);
    group.expected_answers[block].clear();
    for (uint64_t i = range.begin; i < range.end; ++i) {
      const double answer = center_.alpha * (group.expected_sent[i] - expected_center_[i]);
      group.expected_answers[block].push_back(answer);
      expected_center_[i] += answer;
    }
  }

  // Sends a block. All answers to one exchange of the block must be equal.
  void Send(Group& group, uint64_t block) {
    const Range range = shard_->BlockRange(block);
    std::vector<float> answer(range.size());
    const auto values = absl::MakeConstSpan(group.sent).subspan(range.begin, range.size());
    const BlockExchange id = {group.speaker, group.sequence, range.begin};
    ASSERT_EQ(shard_->ApplyBlock(id, values, absl::MakeSpan(answer)), absl::OkStatus());
    if (group.counted[block] == group.sequence) {
      ++repeats;
      ASSERT_EQ(answer, group.answers[block]);
    }
    group.counted[block] = group.sequence;
    group.answers[block] = answer;
  }

  std::mt19937 random_;
  TestCenter center_;
  std::unique_ptr<Shard> shard_;
  std::vector<double> expected_center_;
  std::vector<Group> groups_;
};

// In a hundred schedules of one to eight groups, center and groups follow the formula. Blocks come in any order,
// answers are lost, exchanges are repeated and groups are started again.
TEST(ShardElastic, FollowsTheFormula) {
  int losses = 0, repeats = 0, restarts = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Schedule schedule(seed, seed % 8 + 1);
    for (int event = 0; event < 300; ++event) {
      ASSERT_NO_FATAL_FAILURE(schedule.Step());
      ASSERT_NO_FATAL_FAILURE(schedule.ExpectTheFormula()) << "event " << event;
    }
    losses += schedule.losses;
    repeats += schedule.repeats;
    restarts += schedule.restarts;
  }
  EXPECT_GT(losses, 1000);
  EXPECT_GT(repeats, 1000);
  EXPECT_GT(restarts, 100);
}

}  // namespace
}  // namespace hooke
