// Rules of distances at a shard whose groups are out of step: a group has rounds without the others, or ends before
// them.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr uint64_t kInterval = 4;
constexpr uint64_t kIntervals = 6;
constexpr uint64_t kValues = 24;  // 24 values make six blocks.

struct Case {
  std::string name;
  v1::AveragingSpec::Rule rule;
  double rate;
  double momentum;
  bool nesterov;
};
const Case kCases[] = {
    {"average", v1::AveragingSpec::AVERAGE, 1, 0, false},
    {"bmuf", v1::AveragingSpec::BMUF, 1, 0.5, false},
    {"slowmo", v1::AveragingSpec::SLOWMO, 1, 0.7, false},
    {"diloco", v1::AveragingSpec::DILOCO, 0.7, 0.9, true},
};

// Returns a request. Without a grace window a group that comes alone has a round of its own, at once.
v1::AttachRequest Request(const Case& c, absl::Duration grace = absl::ZeroDuration()) {
  TestCenter center;
  center.groups = 2;
  center.values = kValues;
  v1::AttachRequest request = MakeStepRequest(center, c.rule, c.rate);
  v1::JobSpecForShard& job = *request.mutable_job();
  job.set_interval(kInterval);
  job.mutable_optimizer()->set_momentum(c.momentum);
  job.mutable_optimizer()->set_nesterov(c.nesterov);
  job.set_steps_per_epoch(kInterval * kIntervals);
  job.set_grace_seconds(absl::ToDoubleSeconds(grace));
  return request;
}

// Makes a shard of zeros to which group 0 has attached.
std::unique_ptr<Shard> MakeShard(const v1::AttachRequest& request) {
  return MakeTestShard(request, std::vector<float>(kValues), 1);
}

// Sends a distance of 1 for every value of a block.
void SendBlock(Shard& shard, const Speaker& speaker, uint64_t sequence, uint64_t block) {
  const Range range = shard.BlockRange(block);
  const std::vector<float> values(range.size(), 1);
  std::vector<float> answer(range.size());
  const absl::Time begin = absl::Now();
  EXPECT_EQ(shard.ApplyBlock({speaker, sequence, range.begin}, values, absl::MakeSpan(answer)), absl::OkStatus());
  EXPECT_LT(absl::Now() - begin, absl::Seconds(8)) << "the grace window of 10 s was waited for: group " << speaker.group
                                                   << ", exchange " << sequence << ", block " << block;
}

void SendInterval(Shard& shard, uint32_t group, uint64_t interval) {
  for (uint64_t block = 0; block < shard.blocks(); ++block) {
    SendBlock(shard, {group, 0, 1}, interval * kInterval, block);
  }
}

// Returns how far a block's center will have moved when it comes to rest. The distance includes the moves that its
// velocity will still cause.
double Reach(const Shard& shard, const Case& c, uint64_t block) {
  const Shard::BlockCopy copy = shard.CopyBlock(block);
  if (c.momentum == 0) return -copy.values[0];
  const double pushes = c.momentum / (1 - c.momentum) * (c.nesterov ? c.momentum : 1);
  return -copy.values[0] + c.rate * pushes * copy.state[0];
}

// Returns how far one whole round moves the center until it comes to rest.
double Unit(const Case& c) { return c.rate / (1 - c.momentum); }

void ExpectReach(const Shard& shard, const Case& c, double rounds) {
  for (uint64_t block = 0; block < shard.blocks(); ++block) {
    EXPECT_NEAR(Reach(shard, c, block), rounds * Unit(c), 1e-4 * rounds * Unit(c)) << c.name << ", block " << block;
  }
}

// If two groups are in step, each interval is one whole round. The tests below compare with this.
TEST(ShardOutOfStep, InStepEachIntervalIsAWholeRound) {
  for (const Case& c : kCases) {
    const auto shard = MakeShard(Request(c, absl::Seconds(10)));
    AttachGroup(*shard, 1);
    std::thread other([&] {
      for (uint64_t interval = 1; interval <= kIntervals; ++interval) SendInterval(*shard, 1, interval);
    });
    for (uint64_t interval = 1; interval <= kIntervals; ++interval) SendInterval(*shard, 0, interval);
    other.join();
    ExpectReach(*shard, c, kIntervals);
    EXPECT_EQ(shard->updates(), kIntervals * shard->blocks());
  }
}

// Two groups train over the same intervals, but each always has rounds of its own. They move the center as far as two
// groups in common rounds do.
TEST(ShardOutOfStep, GroupsInRoundsOfTheirOwnMoveTheCenterByTheSame) {
  for (const Case& c : kCases) {
    const auto shard = MakeShard(Request(c));
    AttachGroup(*shard, 1);
    for (uint64_t interval = 1; interval <= kIntervals; ++interval) {
      SendInterval(*shard, 0, interval);
      SendInterval(*shard, 1, interval);
    }
    ExpectReach(*shard, c, kIntervals);
    EXPECT_EQ(shard->updates(), 2 * kIntervals * shard->blocks());
  }
}

// One group begins an interval before the other and ends an interval earlier. Training takes one interval longer, and
// in its first and last interval one group is alone. So the center moves by one round more. If every distance counted
// in full, it would move by twice as many rounds.
TEST(ShardOutOfStep, AnIntervalApartTheCenterMovesByOneRoundMore) {
  for (const Case& c : kCases) {
    const auto shard = MakeShard(Request(c));
    SendInterval(*shard, 0, 1);
    ExpectReach(*shard, c, 1);
    AttachGroup(*shard, 1);
    for (uint64_t interval = 2; interval <= kIntervals; ++interval) {
      SendInterval(*shard, 0, interval);
      SendInterval(*shard, 1, interval - 1);
    }
    ExpectReach(*shard, c, kIntervals);
    SendInterval(*shard, 1, kIntervals);
    ExpectReach(*shard, c, kIntervals + 1);
  }
}

// A dead group counts as live in the one round that waited for it, at every block and for every rank. In later rounds
// only the other groups count.
TEST(ShardOutOfStep, ADeadGroupCountsOnce) {
  for (const Case& c : kCases) {
    v1::AttachRequest request = Request(c);
    request.mutable_job()->set_ranks(2);
    const auto shard = MakeShard(request);
    AttachGroup(*shard, 1);
    for (uint64_t interval = 1; interval <= 3; ++interval) {
      for (uint64_t block = 0; block < shard->blocks(); ++block) {
        SendBlock(*shard, {0, block < 3 ? 0u : 1u, 1}, interval * kInterval, block);
      }
      ExpectReach(*shard, c, static_cast<double>(interval) - 0.5);
    }
  }
}

// A dead group counts as live in one round even if several ranks wait for it at the same time.
TEST(ShardOutOfStep, ADeadGroupCountsOnceForRanksThatWaitTogether) {
  const Case& c = kCases[0];
  for (int i = 0; i < 10; ++i) {
    v1::AttachRequest request = Request(c, absl::Milliseconds(50));
    request.mutable_job()->set_ranks(2);
    const auto shard = MakeShard(request);
    AttachGroup(*shard, 1);
    for (uint64_t interval = 1; interval <= 3; ++interval) {
      const auto send = [&](uint32_t rank, uint64_t first) {
        for (uint64_t block = first; block < first + 3; ++block) {
          SendBlock(*shard, {0, rank, 1}, interval * kInterval, block);
        }
      };
      std::thread other([&] { send(1, 3); });
      send(0, 0);
      other.join();
      ExpectReach(*shard, c, static_cast<double>(interval) - 0.5);
    }
  }
}

// A job's last exchange has fewer steps than an interval. The round's share of a whole round is proportional to its
// steps, for the distances and for the momentum.
TEST(ShardOutOfStep, LessThanAnIntervalIsLessOfARound) {
  const Case c = kCases[3];
  const auto shard = MakeShard(Request(c));
  SendInterval(*shard, 0, 1);
  const double v = shard->CopyBlock(0).state[0];
  const double center = shard->CopyBlock(0).values[0];
  SendBlock(*shard, {0, 0, 1}, kInterval + kInterval / 4, 0);
  const double decay = std::pow(c.momentum, 0.25);
  const double push = c.momentum * (1 - decay) / (1 - c.momentum);
  EXPECT_NEAR(shard->CopyBlock(0).state[0], decay * v + 1, 1e-5);
  EXPECT_NEAR(shard->CopyBlock(0).values[0], center - c.rate * ((1 + c.momentum) + c.momentum * push * v), 1e-5);
}

// If the number of steps between exchanges is not fixed, each exchange counts as a whole interval.
TEST(ShardOutOfStep, IntervalsThatVaryAreWhole) {
  const Case c = kCases[3];
  v1::AttachRequest request = Request(c);
  request.mutable_job()->set_interval(0);
  const auto shard = MakeShard(request);
  SendBlock(*shard, {0, 0, 1}, 1, 0);
  SendBlock(*shard, {0, 0, 1}, 2, 0);
  EXPECT_FLOAT_EQ(shard->CopyBlock(0).state[0], 1.9f);
}

// Returns a request for a job with two fragments of three blocks each.
v1::AttachRequest FragmentsRequest() {
  v1::AttachRequest request = Request(kCases[0], absl::Seconds(10));
  request.mutable_job()->set_fragments(2);
  return request;
}

// Group 0 is in the middle of an exchange of all fragments when group 1 sends the first block of a fragment. They have
// one round at that block. At the other blocks neither waits for the other.
TEST(ShardOutOfStep, AnExchangeThatBeginsInTheMiddleOfAnothersWaitsForNobody) {
  const auto shard = MakeShard(FragmentsRequest());
  SendBlock(*shard, {0, 0, 1}, 7, 0);
  AttachGroup(*shard, 1);
  // Group 1 sends its block on two streams. When one of them returns, the other is waiting in the round.
  TwoStreams streams([&] {
    const Range range = shard->BlockRange(3);
    const std::vector<float> values(range.size(), 1);
    std::vector<float> answer(range.size());
    return shard->ApplyBlock({{1, 0, 1}, 3, range.begin}, values, absl::MakeSpan(answer)).ok();
  });
  EXPECT_TRUE(streams.OneLeft(absl::Seconds(30)));
  for (const uint64_t block : {3, 4, 5}) SendBlock(*shard, {0, 0, 1}, 7, block);
  EXPECT_EQ(streams.Answered(), 1);
  EXPECT_EQ(shard->CopyBlock(3).updates, 1u) << "they met";
  for (const uint64_t block : {4, 5}) SendBlock(*shard, {1, 0, 1}, 3, block);
}

// No group waits for a group that has made its last exchange, even if that group attaches to see whether the exchange
// is saved.
TEST(ShardOutOfStep, AGroupThatHasEndedIsNotAwaited) {
  const auto shard = MakeShard(Request(kCases[0], absl::Seconds(10)));
  SendInterval(*shard, 0, kIntervals - 1);
  AttachGroup(*shard, 1);
  std::thread other([&] { SendInterval(*shard, 1, kIntervals - 1); });
  SendInterval(*shard, 0, kIntervals);
  other.join();
  AttachGroup(*shard, 0);
  SendInterval(*shard, 1, kIntervals);
}

// A group that is waiting for another group goes on when the other ends.
TEST(ShardOutOfStep, WhoWaitsForAGroupThatEndsGoesOn) {
  const auto shard = MakeShard(Request(kCases[0], absl::Seconds(10)));
  AttachGroup(*shard, 1);
  std::thread other([&] {
    SendInterval(*shard, 1, kIntervals - 1);
    SendInterval(*shard, 1, kIntervals);
  });
  SendInterval(*shard, 0, kIntervals);
  other.join();
}

// No group waits for a group that has ended, even after a restart of the server.
TEST(ShardOutOfStep, AGroupThatHasEndedIsNotAwaitedAfterARestart) {
  const v1::AttachRequest request = Request(kCases[0], absl::Seconds(10));
  const auto before = MakeShard(request);
  SendInterval(*before, 0, kIntervals);
  AttachGroup(*before, 1);
  const auto shard = Shard::Create(PlanShard(request, 4).value()).value();
  for (uint64_t block = 0; block < before->blocks(); ++block) shard->RestoreBlock(block, before->CopyBlock(block));
  shard->RestoreState(before->CopyGroups(), before->updates());
  SendInterval(*shard, 1, 1);
}

}  // namespace
}  // namespace hooke
