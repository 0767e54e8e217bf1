#include "server/parameters/round_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace hooke {
namespace {

using Fate = RoundBook::Fate;
using Groups = std::vector<uint32_t>;

constexpr absl::Duration kGrace = absl::Seconds(5);

// A RoundBook, and the data that a shard passes to it: each block's version, and the version of each group's copy. The
// time is virtual.
class TestBook {
 public:
  explicit TestBook(const RoundBook::Options& options)
      : book(options),
        versions_(options.blocks),
        seen_(options.blocks, std::vector<uint64_t>(options.groups)),
        begun_(options.blocks, std::vector<bool>(options.groups)) {}

  // Attaches a group's incarnation, which has made `steps` steps.
  void Attach(uint32_t group, uint32_t incarnation = 1, uint64_t steps = 0) {
    book.NoteCome(group);
    book.roster().Enter(group, steps);
    if (!book.Begin(group, {incarnation, steps})) return;
    for (size_t block = 0; block < versions_.size(); ++block) {
      seen_[block][group] = versions_[block];
      begun_[block][group] = false;
    }
  }

  RoundBook::Decision Arrive(uint32_t group, uint64_t sequence, uint64_t block, uint32_t rank = 0) {
    RoundBook::Arrival arrival;
    arrival.block = block;
    arrival.rank = rank;
    arrival.id = {1, sequence};
    arrival.first = block == first_of[rank];
    arrival.late = begun_[block][group] && seen_[block][group] != versions_[block];
    arrival.from.group = group;
    arrival.from.sequence = sequence;
    RoundBook::Decision decision = book.Arrive(now, arrival, HistoryOf(block));
    if (decision.fate == Fate::kDropped) Answer(block, group);
    if (decision.fate == Fate::kClosed) Apply(decision.round);
    return decision;
  }

  RoundBook::Decision Look(uint64_t block) {
    RoundBook::Decision decision = book.Look(now, block, HistoryOf(block));
    if (decision.fate == Fate::kClosed) Apply(decision.round);
    return decision;
  }

  uint64_t version(uint64_t block) const { return versions_[block]; }

  RoundBook book;
  absl::Time now = absl::UnixEpoch();
  std::vector<uint64_t> first_of = {0, 1};  // For each rank: its first block.

 private:
  RoundBook::History HistoryOf(uint64_t block) const { return {versions_[block], seen_[block]}; }

  void Apply(const RoundBook::ClosedRound& round) {
    ++versions_[round.block];
    for (const Contribution& each : round.contributions) Answer(round.block, each.group);
    book.NoteApplied(round);
  }

  void Answer(uint64_t block, uint32_t group) {
    seen_[block][group] = versions_[block];
    begun_[block][group] = true;
  }

  std::vector<uint64_t> versions_;
  std::vector<std::vector<uint64_t>> seen_;
  std::vector<std::vector<bool>> begun_;  // Whether the group's incarnation has had an answer at the block.
};

// Returns the book of a job of `groups` groups, all of which have attached.
TestBook MakeBook(uint32_t groups, uint64_t blocks, uint32_t quorum = 0, bool drops_late = false, uint32_t slices = 1) {
  TestBook book({groups, slices, blocks, {quorum, kGrace}, drops_late});
  for (uint32_t group = 0; group < groups; ++group) book.Attach(group);
  return book;
}

Groups In(const RoundBook::Decision& decision) {
  Groups groups;
  for (const Contribution& each : decision.round.contributions) groups.push_back(each.group);
  return groups;
}

// The last awaited group closes the round. All queued contributions belong to it, in the order of their groups.
TEST(RoundBook, TheLastArrivalClosesTheRound) {
  TestBook test = MakeBook(3, 1);
  EXPECT_EQ(test.Arrive(2, 1, 0).fate, Fate::kQueued);
  EXPECT_EQ(test.Arrive(0, 1, 0).fate, Fate::kQueued);
  const RoundBook::Decision decision = test.Arrive(1, 1, 0);
  EXPECT_EQ(decision.fate, Fate::kClosed);
  EXPECT_EQ(In(decision), (Groups{0, 1, 2}));
  EXPECT_EQ(decision.round.live, (Groups{0, 1, 2}));
  EXPECT_TRUE(decision.round.missing.empty());
  EXPECT_STREQ(decision.reason, "all awaited groups have contributed");
  EXPECT_EQ(test.Arrive(2, 2, 0).fate, Fate::kQueued) << "the next round";
}

// A round closes without a missing group when its grace window has passed, and tells when to look. Later rounds do not
// wait for that group until it sends again. It counts as live only in the round that waited for it.
TEST(RoundBook, AMissingGroupIsWaitedForOnce) {
  TestBook test = MakeBook(3, 2);
  const absl::Time start = test.now;
  EXPECT_EQ(test.Arrive(0, 1, 0).again, start + kGrace);
  test.now += absl::Seconds(1);
  EXPECT_EQ(test.Arrive(1, 1, 0).again, start + kGrace) << "the window began with the first contribution";
  test.now = start + kGrace - absl::Nanoseconds(1);
  EXPECT_EQ(test.Look(0).fate, Fate::kQueued);
  test.now = start + kGrace;
  const RoundBook::Decision decision = test.Look(0);
  EXPECT_EQ(decision.fate, Fate::kClosed);
  EXPECT_EQ(In(decision), (Groups{0, 1}));
  EXPECT_EQ(decision.round.missing, (Groups{2}));
  EXPECT_EQ(decision.round.live, (Groups{0, 1, 2}));
  test.Arrive(0, 1, 1);
  EXPECT_EQ(test.Arrive(1, 1, 1).round.live, (Groups{0, 1, 2})) << "another block of the same exchange";
  test.Arrive(0, 2, 0);
  EXPECT_EQ(test.Arrive(1, 2, 0).round.live, (Groups{0, 1})) << "the next exchange";
  test.Arrive(2, 1, 0);
  test.Arrive(0, 3, 0);
  EXPECT_EQ(In(test.Arrive(1, 3, 0)), (Groups{0, 1, 2})) << "it has sent again";
}

// A group that is expected but has never come is waited for, but does not count as live.
TEST(RoundBook, AGroupThatHasNeverComeIsNotLive) {
  TestBook test({2, 1, 1, {0, kGrace}, false});
  test.Attach(0);
  EXPECT_EQ(test.Arrive(0, 1, 0).fate, Fate::kQueued);
  test.now += kGrace;
  const RoundBook::Decision decision = test.Look(0);
  EXPECT_EQ(decision.round.missing, (Groups{1}));
  EXPECT_EQ(decision.round.live, (Groups{0}));
}

// Without its quorum a round never closes. A contribution that is withdrawn takes its part of the quorum with it.
TEST(RoundBook, AQuorumMustBeThere) {
  TestBook test = MakeBook(3, 1, /*quorum=*/2);
  EXPECT_EQ(test.Arrive(0, 1, 0).again, absl::InfiniteFuture());
  const absl::Time second = test.now += absl::Hours(1);
  EXPECT_EQ(test.Look(0).fate, Fate::kQueued);
  EXPECT_STREQ(test.Look(0).reason, "fewer groups than the quorum have contributed");
  EXPECT_EQ(test.Arrive(1, 1, 0).again, second + kGrace);
  test.book.Withdraw(0, 1);
  test.book.Withdraw(0, 1);  // Group 1 has nothing more to withdraw.
  EXPECT_EQ(test.Look(0).again, absl::InfiniteFuture());
  test.now += kGrace;
  EXPECT_EQ(test.Arrive(2, 1, 0).again, test.now + kGrace);
  test.now += kGrace;
  EXPECT_EQ(In(test.Look(0)), (Groups{0, 2}));
  EXPECT_EQ(test.Look(0).fate, Fate::kQueued) << "an empty queue";
}

// A contribution that comes again counts once.
TEST(RoundBook, ARepeatReplacesWhatIsQueued) {
  TestBook test = MakeBook(2, 1);
  EXPECT_FALSE(test.Arrive(0, 1, 0).replaces);
  test.now += absl::Seconds(1);
  const RoundBook::Decision again = test.Arrive(0, 1, 0);
  EXPECT_TRUE(again.replaces);
  EXPECT_EQ(again.again, test.now + kGrace) << "the first one is as if never made";
  const RoundBook::Decision decision = test.Arrive(1, 1, 0);
  EXPECT_EQ(In(decision), (Groups{0, 1}));
  EXPECT_EQ(decision.round.members.size(), 2u);
}

// The first block settles for the whole exchange who is waited for. A group that joins later waits for the next
// exchange, and the others do not wait for it before.
TEST(RoundBook, TheFirstBlockDecidesForTheExchange) {
  TestBook test({3, 1, 3, {1, kGrace}, false});
  test.Attach(0);
  test.Attach(1);
  test.Arrive(0, 1, 0);
  EXPECT_EQ(In(test.Arrive(1, 1, 0)), (Groups{0, 1}));
  test.Attach(2);
  EXPECT_EQ(test.Arrive(2, 1, 0).fate, Fate::kQueued);
  for (const uint64_t block : {1, 2}) {
    EXPECT_EQ(test.Arrive(0, 1, block).fate, Fate::kQueued);
    EXPECT_EQ(In(test.Arrive(1, 1, block)), (Groups{0, 1})) << block;
  }
  EXPECT_EQ(test.Arrive(0, 2, 0).fate, Fate::kQueued);
  EXPECT_EQ(In(test.Arrive(1, 2, 0)), (Groups{0, 1, 2}));
}

// After a restart the server does not know which groups were in the round of the exchange's first block. So the other
// blocks wait for all awaited groups, and they open no pass.
TEST(RoundBook, AfterARestartALaterBlockWaitsForAll) {
  TestBook test = MakeBook(2, 2);
  EXPECT_EQ(test.Arrive(0, 7, 1).fate, Fate::kQueued);
  const RoundBook::Decision decision = test.Arrive(1, 7, 1);
  EXPECT_EQ(In(decision), (Groups{0, 1}));
  for (const RoundBook::Member& each : decision.round.members) EXPECT_FALSE(each.opens);
  EXPECT_EQ(test.Arrive(0, 8, 0).fate, Fate::kQueued);
}

// A gradient of an older center is dropped. An exchange that begins late is dropped as a whole, also at blocks where it
// is not late. If a later exchange overtakes an earlier one, only the overtaken blocks of the earlier one are dropped.
TEST(RoundBook, LateGradientsAreDropped) {
  TestBook test({2, 1, 3, {1, absl::ZeroDuration()}, /*drops_late=*/true});
  test.Attach(0);
  test.Attach(1);
  EXPECT_EQ(test.Arrive(0, 1, 0).fate, Fate::kClosed);
  EXPECT_EQ(test.Arrive(1, 1, 0).fate, Fate::kClosed) << "the shard does not know which center a new group has";
  EXPECT_EQ(test.Arrive(1, 1, 1).fate, Fate::kClosed);
  EXPECT_EQ(test.Arrive(0, 1, 1).fate, Fate::kDropped) << "the pass of group 1 is later, and was here before";
  EXPECT_EQ(test.Arrive(0, 1, 2).fate, Fate::kClosed) << "here it was not";
  EXPECT_EQ(test.Arrive(0, 2, 0).fate, Fate::kDropped);
  EXPECT_EQ(test.Arrive(0, 2, 1).fate, Fate::kDropped);
  EXPECT_EQ(test.Arrive(0, 2, 2).fate, Fate::kDropped);
  EXPECT_EQ(test.Arrive(0, 3, 0).fate, Fate::kClosed);
}

// A round of a block closes without an exchange that shares its pass. Under rules that drop nothing, that exchange then
// has a round of its own, at once.
TEST(RoundBook, AnOvertakenExchangeWaitsForNobody) {
  TestBook test = MakeBook(2, 2, /*quorum=*/1);
  test.Arrive(0, 1, 0);
  test.Arrive(1, 1, 0);
  EXPECT_EQ(test.Arrive(1, 1, 1).fate, Fate::kQueued);
  test.now += kGrace;
  EXPECT_EQ(In(test.Look(1)), (Groups{1})) << "group 0 is late";
  EXPECT_EQ(In(test.Arrive(0, 1, 1)), (Groups{0}));
  EXPECT_EQ(test.version(1), 2u);
}

// Two ranks of a group wait for the same dead group, at blocks of their own. For each of the two ranks, the dead group
// is live in one exchange.
TEST(RoundBook, ADeadGroupIsLiveOnceForEachRank) {
  TestBook test = MakeBook(2, 2, /*quorum=*/0, /*drops_late=*/false, /*slices=*/2);
  EXPECT_EQ(test.Arrive(0, 1, 0, 0).fate, Fate::kQueued);
  test.now += kGrace;
  EXPECT_EQ(test.Look(0).round.live, (Groups{0, 1}));
  EXPECT_EQ(test.Arrive(0, 1, 1, 1).round.live, (Groups{0, 1})) << "dismissed by the other rank's round";
  EXPECT_EQ(test.Arrive(0, 2, 0, 0).round.live, (Groups{0}));
  EXPECT_EQ(test.Arrive(0, 2, 1, 1).round.live, (Groups{0}));
}

// A group that ends is not awaited any more. The next Look closes the round of the groups that wait for it.
TEST(RoundBook, WhoEndsIsNotAwaited) {
  TestBook test = MakeBook(2, 2, /*quorum=*/2);
  test.Arrive(0, 1, 0);
  test.Arrive(1, 1, 0);
  EXPECT_EQ(test.Arrive(0, 1, 1).fate, Fate::kQueued);
  EXPECT_EQ(test.Look(1).fate, Fate::kQueued);
  test.book.roster().End(1);
  EXPECT_EQ(In(test.Look(1)), (Groups{0}));
  EXPECT_EQ(In(test.Arrive(0, 2, 0)), (Groups{0})) << "also less than the quorum, if no more remain";
}

// A new incarnation goes on from the group's block that is furthest behind, whatever block it sends first.
TEST(RoundBook, AnIncarnationCountsItsOwnSteps) {
  RoundBook book({1, 1, 2, {}, false});
  EXPECT_TRUE(book.Begin(0, {2, 30}));
  EXPECT_FALSE(book.Begin(0, {2, 40}));
  EXPECT_EQ(book.StepsFrom(0, {2, 50}, {1, 45}), 30u);
  EXPECT_EQ(book.StepsFrom(0, {2, 60}, {2, 50}), 50u);
  EXPECT_EQ(book.StepsFrom(0, {1, 50}, {0, 7}), 7u) << "restored from a snapshot";
}

// Groups send the blocks of their exchanges one after another. A seed chooses who sends, joins and dies when.
class Simulation {
 public:
  Simulation(uint32_t seed, uint32_t groups, uint32_t deaths)
      : random_(seed), deaths_(deaths), groups_(groups), test_({groups, 1, kBlocks, {1, kGrace}, false}) {}

  void Run() {
    while (true) {
      std::vector<uint32_t> may_send;
      bool somebody_waits = false;
      for (uint32_t group = 0; group < groups_.size(); ++group) {
        const Group& each = groups_[group];
        if (each.dead || each.exchanges == kExchanges) continue;
        if (each.queued) somebody_waits = true;
        if (!each.queued) may_send.push_back(group);
      }
      if (!may_send.empty()) {
        ASSERT_NO_FATAL_FAILURE(Send(may_send[random_() % may_send.size()]));
      } else if (somebody_waits) {
        ASSERT_NO_FATAL_FAILURE(PassWindow());
      } else {
        return;
      }
    }
  }

  uint32_t windows() const { return windows_; }
  uint32_t dead() const { return static_cast<uint32_t>(std::count_if(groups_.begin(), groups_.end(), IsDead)); }

 private:
  static constexpr uint64_t kBlocks = 4;
  static constexpr uint64_t kExchanges = 6;
  struct Group {
    bool attached = false, queued = false, dead = false;
    uint64_t block = 0;      // The next block to send.
    uint64_t exchanges = 0;  // Exchanges that are done.
  };
  static bool IsDead(const Group& group) { return group.dead; }

  void Send(uint32_t group) {
    Group& own = groups_[group];
    if (!own.attached) {
      own.attached = true;
      return test_.Attach(group);
    }
    if (dead() < deaths_ && random_() % 16 == 0) {
      own.dead = true;
      return;
    }
    test_.now += absl::Milliseconds(1);
    ASSERT_NO_FATAL_FAILURE(LookEverywhere());  // A grace window may have passed.
    own.queued = true;
    ASSERT_NO_FATAL_FAILURE(GoOn(test_.Arrive(group, own.exchanges + 1, own.block)));
  }

  // Lets the groups of a closed round go on.
  void GoOn(const RoundBook::Decision& decision) {
    if (decision.fate == Fate::kQueued) return;
    ASSERT_EQ(decision.round.members.size(), decision.round.contributions.size());
    bool somebody_left = !decision.round.missing.empty();
    for (const Contribution& each : decision.round.contributions) {
      Group& group = groups_[each.group];
      ASSERT_TRUE(std::exchange(group.queued, false)) << "in two rounds";
      ASSERT_EQ(group.block, decision.round.block);
      ASSERT_EQ(each.sequence, group.exchanges + 1);
      group.block = (group.block + 1) % kBlocks;
      if (group.block == 0 && ++group.exchanges == kExchanges) {
        somebody_left = true;
        test_.book.roster().End(each.group);
      }
    }
    if (!somebody_left) return;
    ASSERT_NO_FATAL_FAILURE(LookEverywhere());
  }

  void LookEverywhere() {
    for (uint64_t block = 0; block < kBlocks; ++block) ASSERT_NO_FATAL_FAILURE(GoOn(test_.Look(block)));
  }

  // Lets a grace window pass. All groups wait, so only time can close a round.
  void PassWindow() {
    absl::Time again = absl::InfiniteFuture();
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const RoundBook::Decision decision = test_.Look(block);
      ASSERT_EQ(decision.fate, Fate::kQueued) << "a round that could have closed before";
      again = std::min(again, decision.again);
    }
    ASSERT_LE(again, test_.now + kGrace);
    test_.now = again;
    ++windows_;
    ASSERT_NO_FATAL_FAILURE(LookEverywhere());
  }

  std::mt19937 random_;
  const uint32_t deaths_;
  std::vector<Group> groups_;
  TestBook test_;
  uint32_t windows_ = 0;
};

// Groups join and end at any time, and each sends its blocks when its last one is answered. Nobody ever waits out a
// grace window, so no two groups wait for each other.
TEST(RoundBook, LiveGroupsNeverWaitForEachOther) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Simulation simulation(seed, seed % 8 + 1, /*deaths=*/0);
    ASSERT_NO_FATAL_FAILURE(simulation.Run()) << "seed " << seed;
    ASSERT_EQ(simulation.windows(), 0u) << "seed " << seed;
  }
}

// Some groups die. All others end, and wait at most one grace window for each dead group.
TEST(RoundBook, DeadGroupsCostOneWindowEach) {
  uint32_t dead = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Simulation simulation(seed, seed % 8 + 2, /*deaths=*/seed % 3 + 1);
    ASSERT_NO_FATAL_FAILURE(simulation.Run()) << "seed " << seed;
    ASSERT_LE(simulation.windows(), simulation.dead()) << "seed " << seed;
    dead += simulation.dead();
  }
  EXPECT_GT(dead, 1000u);
}

}  // namespace
}  // namespace hooke
