#include "server/parameters/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Duration kLease = absl::Seconds(20);
constexpr uint64_t kTestBlock = 4;
const absl::Time kNow = absl::UnixEpoch();

std::unique_ptr<Shard> MakeShard(const TestCenter& center, uint64_t block_values = kTestBlock) {
  return Shard::Create(PlanShard(MakeAttachRequest(center), block_values).value()).value();
}

// Lets `speaker` initialize the shard. Then attaches the first incarnation of each other group.
void Initialize(Shard& shard, const Speaker& speaker = {}) {
  ASSERT_EQ(shard.Attach(kNow, speaker, kLease).value().answer, AttachAnswer::kInitialize);
  for (uint64_t block = 0; block < shard.blocks(); ++block) {
    const Range range = shard.BlockRange(block);
    ASSERT_TRUE(shard.WriteInitial(kNow, speaker, range.begin, Ramp(range.begin, range.size())).ok());
  }
  ASSERT_TRUE(shard.CompleteInitialize(speaker).ok());
  for (uint32_t group = 0; group < shard.plan().job.groups(); ++group) {
    const uint32_t incarnation = group == speaker.group ? speaker.incarnation : 1;
    ASSERT_TRUE(shard.Attach(kNow, {group, 0, incarnation}, kLease).ok());
  }
}

std::unique_ptr<Shard> MakeInitializedShard(const TestCenter& center) {
  std::unique_ptr<Shard> shard = MakeShard(center);
  Initialize(*shard);
  return shard;
}

std::vector<float> Values(const Shard& shard) {
  std::vector<float> all;
  for (uint64_t block = 0; block < shard.blocks(); ++block) {
    const std::vector<float> values = shard.CopyBlock(block).values;
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// An exchange moves the center by alpha (x - c) and answers with the same difference.
TEST(Shard, AppliesTheRule) {
  const auto shard = MakeInitializedShard({});
  std::vector<float> answer(4);
  ASSERT_TRUE(shard->ApplyBlock({{}, 1, 4}, Ramp(4, 4, 8), absl::MakeSpan(answer)).ok());
  EXPECT_THAT(answer, Each(2.0f));
  std::vector<float> expected = Ramp(0, 10);
  for (int i = 4; i < 8; ++i) expected[i] += 2;
  EXPECT_EQ(Values(*shard), expected);
  EXPECT_EQ(shard->updates(), 1u);
}

// The difference of two messages of finite values is infinite. Such messages once made the center infinite for good.
// Now the shard refuses the second message and does not change, and the exchange may come again with other values. A
// repeat of the first exchange still gets its answer.
TEST(Shard, FiniteMessagesKeepTheCenterFinite) {
  const auto shard = MakeInitializedShard({});
  const Speaker other = {1, 0, 1};
  std::vector<float> first(4), again(4);
  ASSERT_TRUE(shard->ApplyBlock({{}, 1, 4}, std::vector<float>(4, 3.4e38f), absl::MakeSpan(first)).ok());
  const Shard::BlockCopy before = shard->CopyBlock(1);
  std::vector<float> opposite = Ramp(4, 4);
  opposite[2] = -3.4e38f;
  const absl::Status status = shard->ApplyBlock({other, 1, 4}, opposite, absl::MakeSpan(again));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("what group 1 sent would make, in the center of job job-1, value "
                        "6 -inf; the center stays as it was"));
  const Shard::BlockCopy after = shard->CopyBlock(1);
  EXPECT_EQ(after.values, before.values);
  EXPECT_EQ(after.applied, before.applied);
  EXPECT_EQ(after.updates, before.updates);
  EXPECT_EQ(shard->updates(), 1u);
  ASSERT_TRUE(shard->ApplyBlock({{}, 1, 4}, opposite, absl::MakeSpan(again)).ok());
  EXPECT_EQ(again, first);
  EXPECT_TRUE(shard->ApplyBlock({other, 1, 4}, Ramp(4, 4), absl::MakeSpan(again)).ok());
  EXPECT_EQ(shard->updates(), 2u);
}

// A repeat changes nothing and gets the same answer, even if it has other values. The next exchange is applied.
TEST(Shard, RepeatChangesNothing) {
  const auto shard = MakeInitializedShard({});
  std::vector<float> first(4), again(4);
  ASSERT_TRUE(shard->ApplyBlock({{}, 3, 0}, Ramp(0, 4, 8), absl::MakeSpan(first)).ok());
  const std::vector<float> center = Values(*shard);
  ASSERT_TRUE(shard->ApplyBlock({{}, 3, 0}, Ramp(0, 4, 99), absl::MakeSpan(again)).ok());
  EXPECT_EQ(again, first);
  EXPECT_EQ(Values(*shard), center);
  EXPECT_EQ(shard->updates(), 1u);
  ASSERT_TRUE(shard->ApplyBlock({{}, 4, 0}, Ramp(0, 4, 8), absl::MakeSpan(again)).ok());
  EXPECT_NE(again, first);
  EXPECT_EQ(shard->updates(), 2u);
}

// The shard can repeat a whole window of answers. If an answer has left the window, the repeat of its exchange gets
// zeros, which change nothing in the group. No repeat changes the center.
TEST(Shard, RepeatsAWindowOfAnswers) {
  TestCenter center;
  center.values = uint64_t{4} * (kWindowBlocks + 1);
  const auto shard = MakeInitializedShard(center);
  std::vector<float> answer(4);
  for (uint64_t first = 0; first < center.values; first += 4) {
    ASSERT_TRUE(
        shard->ApplyBlock({{}, 1, first}, Ramp(first, 4, static_cast<float>(4 * (first + 1))), absl::MakeSpan(answer))
            .ok());
  }
  for (uint64_t first = 0; first < center.values; first += 4) {
    ASSERT_TRUE(shard->ApplyBlock({{}, 1, first}, Ramp(first, 4), absl::MakeSpan(answer)).ok());
    EXPECT_THAT(answer, Each(first == 0 ? 0.0f : static_cast<float>(first + 1)));
  }
  EXPECT_EQ(shard->updates(), kWindowBlocks + 1);
}

// Blocks may come in any order, and the center is the same as with ascending blocks.
TEST(Shard, BlocksComeInAnyOrder) {
  const auto forward = MakeInitializedShard({});
  const auto backward = MakeInitializedShard({});
  std::vector<float> answer(4);
  for (const uint64_t first : {0, 4})
    ASSERT_TRUE(forward->ApplyBlock({{}, 1, first}, Ramp(first, 4, 3), absl::MakeSpan(answer)).ok());
  for (const uint64_t first : {4, 0})
    ASSERT_TRUE(backward->ApplyBlock({{}, 1, first}, Ramp(first, 4, 3), absl::MakeSpan(answer)).ok());
  EXPECT_EQ(Values(*forward), Values(*backward));
}

// A group that was started again replaces its earlier incarnation, whose calls are ABORTED. It may use sequences that
// the earlier one has used.
TEST(Shard, OldIncarnationIsAborted) {
  const auto shard = MakeInitializedShard({});
  std::vector<float> answer(4);
  ASSERT_TRUE(shard->ApplyBlock({{0, 0, 1}, 32, 0}, Ramp(0, 4, 8), absl::MakeSpan(answer)).ok());
  ASSERT_TRUE(shard->Attach(kNow, {0, 0, 2}, kLease).ok());
  const absl::Status old = shard->ApplyBlock({{0, 0, 1}, 48, 0}, Ramp(0, 4, 8), absl::MakeSpan(answer));
  EXPECT_EQ(old.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(old.message(), "start 1 of group 0 has been replaced by start 2; stop");
  EXPECT_EQ(shard->Attach(kNow, {0, 0, 1}, kLease).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(shard->ApplyBlock({{0, 0, 2}, 16, 0}, Ramp(0, 4, 8), absl::MakeSpan(answer)).ok());
  EXPECT_TRUE(shard->ApplyBlock({{1, 0, 1}, 16, 0}, Ramp(0, 4, 8), absl::MakeSpan(answer)).ok())
      << "another group is not concerned";
  EXPECT_EQ(shard->updates(), 3u);
}

// Only Attach makes an incarnation known. All other calls of a later incarnation are refused, and the present one goes
// on.
TEST(Shard, AnIncarnationThatHasNotAttachedChangesNothing) {
  const auto shard = MakeInitializedShard({});
  ASSERT_TRUE(shard->Attach(kNow, {1, 0, 4}, kLease).ok());
  const Speaker stranger = {1, 0, std::numeric_limits<uint32_t>::max()};
  std::vector<float> answer(4);
  for (const absl::Status& status : {shard->CheckSpeaker(stranger), shard->CompleteInitialize(stranger),
                                     shard->TellPace(kNow, stranger, 1000).status(),
                                     shard->ApplyBlock({stranger, 16, 0}, Ramp(0, 4, 8), absl::MakeSpan(answer)),
                                     shard->ApplyBlock({stranger, 16, 1000}, Ramp(0, 4, 8), absl::MakeSpan(answer))}) {
    EXPECT_EQ(status, absl::NotFoundError("start 4294967295 of group 1 has not attached to the center of job job-1 on "
                                          "this server; attach to it first"));
  }
  EXPECT_EQ(shard->CopyGroups().incarnations, (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(shard->updates(), 0u);
  EXPECT_EQ(shard->TellPace(kNow, {1, 0, 4}, 2).value().fastest_steps_per_second, 2);
  EXPECT_TRUE(shard->ApplyBlock({{1, 0, 4}, 16, 0}, Ramp(0, 4, 8), absl::MakeSpan(answer)).ok());
}

// A late duplicate of an earlier exchange does not undo a later exchange.
TEST(Shard, SequencesGrow) {
  const auto shard = MakeInitializedShard({});
  std::vector<float> answer(4);
  ASSERT_TRUE(shard->ApplyBlock({{}, 32, 0}, Ramp(0, 4), absl::MakeSpan(answer)).ok());
  const absl::Status status = shard->ApplyBlock({{}, 16, 0}, Ramp(0, 4), absl::MakeSpan(answer));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "sequence 16 of group 0 comes after sequence 32 at value 0; sequences grow within an incarnation");
}

// The shard refuses blocks with wrong numbers, lengths or values. The error says what is wrong or allowed, and nothing
// changes.
TEST(Shard, RefusesWrongBlocks) {
  TestCenter center;
  center.ranks = 2;
  center.values = 26;  // The blocks are 0 to 6. Shard 1 of 2 holds blocks 4 to 6, values 16 to 25.
  center.shard_index = 1;
  center.shard_count = 2;
  const auto shard = MakeInitializedShard(center);
  const Speaker rank1 = {0, 1, 1};
  std::vector<float> nan = Ramp(16, 4);
  nan[2] = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    BlockExchange exchange;
    std::vector<float> values;
    std::string message;
  };
  const Case cases[] = {
      {{rank1, 1, 0}, Ramp(0, 4), "block.first is 0; this shard holds values 16 to before 26"},
      {{rank1, 1, 26}, Ramp(0, 4), "block.first is 26; this shard holds values 16 to before 26"},
      {{rank1, 1, ~uint64_t{0}}, Ramp(0, 4), "this shard holds values 16 to before 26"},
      {{rank1, 1, 18},
       Ramp(0, 4),
       "a block has 4 values from value 18 on; allowed there are 4 values from value 16 on"},
      {{rank1, 1, 16},
       Ramp(0, 8),
       "a block has 8 values from value 16 on; allowed there are 4 values from value 16 on"},
      {{rank1, 1, 16}, {}, "a block has 0 values from value 16 on; allowed there are 4 values from value 16 on"},
      {{rank1, 1, 24},
       Ramp(0, 4),
       "a block has 4 values from value 24 on; allowed there are 2 values from value 24 on"},
      {{rank1, 0, 16}, Ramp(0, 4), "header.sequence is 0; it is at least 1"},
      {{rank1, (uint64_t{1} << 53) + 1, 16},
       Ramp(0, 4),
       "header.sequence is 9007199254740993; it is at most 9007199254740992"},
      {{rank1, 1, 16},
       nan,
       "group 0 sent nan for value 18 of the center; values are finite (has its training diverged?)"},
      {{{0, 0, 1}, 1, 16},
       Ramp(0, 4),
       "the block at value 16 is not of rank 0, who exchanges blocks 0 to before 4 of 4 values"},
      {{{2, 1, 1}, 1, 16}, Ramp(0, 4), "sender.group is 2; 0 to 1 are allowed"},
      {{{0, 2, 1}, 1, 16}, Ramp(0, 4), "sender.rank is 2; 0 to 1 are allowed"},
      {{{0, 1, 0}, 1, 16}, Ramp(0, 4), "sender.incarnation is 0; it is at least 1"},
  };
  const std::vector<float> before = Values(*shard);
  for (const Case& c : cases) {
    std::vector<float> answer(c.values.size());
    const absl::Status status = shard->ApplyBlock(c.exchange, c.values, absl::MakeSpan(answer));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  EXPECT_EQ(Values(*shard), before);
  EXPECT_EQ(shard->updates(), 0u);
}

// One group initializes, and the other waits until it has. A second initialization changes nothing. No group can
// exchange before.
TEST(Shard, OneGroupInitializes) {
  const auto shard = MakeShard({});
  std::vector<float> answer(4);
  const Speaker other = {1, 0, 1};
  EXPECT_EQ(shard->Attach(kNow, {}, kLease).value().answer, AttachAnswer::kInitialize);
  EXPECT_EQ(shard->Attach(kNow, other, kLease).value().answer, AttachAnswer::kWait);
  EXPECT_EQ(shard->WriteInitial(kNow, other, 0, Ramp(0, 4)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(shard->CompleteInitialize(other).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(shard->ApplyBlock({other, 1, 0}, Ramp(0, 4), absl::MakeSpan(answer)).code(), absl::StatusCode::kNotFound);
  Initialize(*shard);
  EXPECT_EQ(shard->Attach(kNow, other, kLease).value().answer, AttachAnswer::kReady);
  EXPECT_EQ(shard->CompleteInitialize({}).code(), absl::StatusCode::kOk);
  EXPECT_EQ(shard->WriteInitial(kNow, {}, 0, Ramp(0, 4, 99)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Values(*shard), Ramp(0, 10));
}

// A group that sends a center slowly keeps the right to initialize, because each block renews the lease. A pause longer
// than the lease ends the right.
TEST(Shard, SlowInitializerKeepsItsRight) {
  const auto shard = MakeShard({});
  const Speaker slow = {0, 0, 1};
  const Speaker next = {1, 0, 1};
  ASSERT_EQ(shard->Attach(kNow, slow, kLease).value().answer, AttachAnswer::kInitialize);
  absl::Time now = kNow;
  for (const uint64_t first : {0, 4}) {
    now += kLease * 0.9;
    EXPECT_EQ(shard->Attach(now, next, kLease).value().answer, AttachAnswer::kWait);
    ASSERT_TRUE(shard->WriteInitial(now, slow, first, Ramp(first, 4)).ok());
  }
  EXPECT_EQ(shard->Attach(now + kLease * 0.9, next, kLease).value().answer, AttachAnswer::kWait);
  EXPECT_EQ(shard->Attach(now + kLease, next, kLease).value().answer, AttachAnswer::kInitialize);
}

// If the first group stalls past its lease, the next group initializes. Late blocks of the first group are refused.
TEST(Shard, RightToInitializePassesOn) {
  const auto shard = MakeShard({});
  const Speaker slow = {0, 0, 1};
  const Speaker next = {1, 0, 1};
  ASSERT_EQ(shard->Attach(kNow, slow, kLease).value().answer, AttachAnswer::kInitialize);
  ASSERT_TRUE(shard->WriteInitial(kNow, slow, 0, Ramp(0, 4, 99)).ok());
  ASSERT_EQ(shard->Attach(kNow + kLease, next, kLease).value().answer, AttachAnswer::kInitialize);
  EXPECT_EQ(shard->WriteInitial(kNow, slow, 4, Ramp(4, 4, 99)).code(), absl::StatusCode::kUnavailable);
  Initialize(*shard, next);
  EXPECT_EQ(Values(*shard), Ramp(0, 10));
}

// A group goes on from the lowest of its sequences over the shard's blocks. A shard without blocks returns the largest
// number, so it holds no group back.
TEST(Shard, LastSequence) {
  TestCenter center;
  const auto shard = MakeInitializedShard(center);
  std::vector<float> answer(4);
  EXPECT_EQ(shard->Attach(kNow, {}, kLease).value().last_sequence, 0u);
  ASSERT_TRUE(shard->ApplyBlock({{}, 16, 0}, Ramp(0, 4), absl::MakeSpan(answer)).ok());
  ASSERT_TRUE(shard->ApplyBlock({{}, 32, 4}, Ramp(4, 4), absl::MakeSpan(answer)).ok());
  EXPECT_EQ(shard->Attach(kNow, {}, kLease).value().last_sequence, 0u);
  ASSERT_TRUE(shard->ApplyBlock({{}, 16, 8}, Ramp(8, 2), absl::MakeSpan(answer).first(2)).ok());
  EXPECT_EQ(shard->Attach(kNow, {}, kLease).value().last_sequence, 16u);
  EXPECT_EQ(shard->Attach(kNow, {1, 0, 1}, kLease).value().last_sequence, 0u);

  center.shard_index = 3;
  center.shard_count = 4;
  const auto empty = MakeInitializedShard(center);
  EXPECT_EQ(empty->Attach(kNow, {}, kLease).value().last_sequence, std::numeric_limits<uint64_t>::max());
}

// A closed shard refuses exchanges and does not change.
TEST(Shard, ClosedRefusesExchanges) {
  const auto shard = MakeInitializedShard({});
  shard->Close();
  std::vector<float> answer(4);
  EXPECT_EQ(shard->ApplyBlock({{}, 1, 0}, Ramp(0, 4, 8), absl::MakeSpan(answer)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Values(*shard), Ramp(0, 10));
}

// A copy taken after Close has every exchange that was answered. An exchange that was running does not change a block
// later.
TEST(Shard, CloseIsFinal) {
  TestCenter center;
  center.values = 1 << 18;
  for (int round = 0; round < 20; ++round) {
    const auto shard = MakeShard(center, center.values);
    Initialize(*shard);
    std::thread group([&shard, &center]() {
      const std::vector<float> x = Ramp(0, center.values, 8);
      std::vector<float> answer(x.size());
      for (uint64_t sequence = 1;
           shard->ApplyBlock({{}, sequence, 0}, x, absl::MakeSpan(answer)).ok() && sequence < 10000; ++sequence) {
      }
    });
    while (shard->updates() < 2) std::this_thread::yield();
    shard->Close();
    const Shard::BlockCopy copy = shard->CopyBlock(0);
    group.join();
    ASSERT_EQ(shard->CopyBlock(0).applied, copy.applied);
  }
}

// Acts as a rank that only exchanges, without gradients, and now and then sends a block twice.
void ExchangeManyTimes(Shard& shard, Speaker speaker, int exchanges, std::vector<float>& x) {
  std::mt19937 random(speaker.group * 100 + speaker.rank);
  const Range blocks = shard.plan().partition.SliceBlocks({speaker.rank, shard.plan().job.ranks()});
  for (int sequence = 1; sequence <= exchanges; ++sequence) {
    for (uint64_t block = blocks.begin; block < blocks.end; ++block) {
      const Range range = shard.BlockRange(block);
      const absl::Span<float> values = absl::MakeSpan(x).subspan(range.begin, range.size());
      std::vector<float> answer(range.size()), again(range.size());
      ASSERT_TRUE(
          shard.ApplyBlock({speaker, static_cast<uint64_t>(sequence), range.begin}, values, absl::MakeSpan(answer))
              .ok());
      if (random() % 4 == 0) {
        ASSERT_TRUE(
            shard.ApplyBlock({speaker, static_cast<uint64_t>(sequence), range.begin}, values, absl::MakeSpan(again))
                .ok());
        ASSERT_EQ(again, answer);
      }
      for (uint64_t i = 0; i < range.size(); ++i) values[i] -= answer[i];
    }
  }
}

// With zero gradients the sum of center and groups is conserved, however groups, ranks, repeats and readers interleave.
// Each exchange counts once.
TEST(Shard, ConcurrentGroupsConserve) {
  TestCenter center;
  center.values = 1000;
  center.groups = 4;
  center.ranks = 2;
  const auto shard = MakeShard(center, 64);
  Initialize(*shard);
  std::vector<std::vector<float>> x;
  for (uint32_t group = 0; group < center.groups; ++group)
    x.push_back(Ramp(0, center.values, 10.0f * static_cast<float>(group)));
  const int exchanges = 30;
  std::vector<std::thread> threads;
  for (uint32_t group = 0; group < center.groups; ++group) {
    for (uint32_t rank = 0; rank < center.ranks; ++rank) {
      threads.emplace_back([&, group, rank]() { ExchangeManyTimes(*shard, {group, rank, 1}, exchanges, x[group]); });
    }
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(shard->CopyBlock(i % shard->blocks()).applied.size(), center.groups);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(shard->updates(), shard->blocks() * center.groups * exchanges);
  const std::vector<float> c = Values(*shard);
  for (uint64_t i = 0; i < center.values; ++i) {
    const double before = 5.0 * static_cast<double>(i) / 8 + 60;
    const double after =
        c[i] + std::accumulate(x.begin(), x.end(), 0.0, [i](double sum, const auto& v) { return sum + v[i]; });
    ASSERT_NEAR(after, before, 1e-3) << "value " << i;
  }
}

}  // namespace
}  // namespace hooke
