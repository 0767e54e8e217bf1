#include "server/scheduling/group_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr ResizeOptions kOptions = {absl::Seconds(30), absl::Seconds(60), absl::Seconds(5)};

KindSeen Kind(uint32_t count, uint32_t min, uint32_t max) { return {"cloud", count, min, max, count}; }

// A job of one kind whose room changes.
class GroupCountTest : public testing::Test {
 protected:
  GroupCountTest() {
    job_.kinds = {Kind(2, 1, 4)};
    job_.has_started = job_.is_steady = true;
  }

  KindSeen& kind() { return job_.kinds[0]; }
  std::vector<Resize> At(int second) {
    return NextCounts(job_, absl::MakeSpan(&watch_, 1), absl::Seconds(second), kOptions);
  }

  JobSeen job_;
  KindWatch watch_;
};

TEST_F(GroupCountTest, GrowsIntoRoomThatStays) {
  kind().fits = 1;
  EXPECT_THAT(At(0), IsEmpty());
  EXPECT_THAT(At(29), IsEmpty());
  kind().fits = 0;
  EXPECT_THAT(At(30), IsEmpty());
  kind().fits = 1;
  EXPECT_THAT(At(31), IsEmpty());
  kind().fits = 5;
  EXPECT_THAT(At(32), IsEmpty());
  EXPECT_THAT(At(60), IsEmpty()) << "the room was away for a moment";
  ASSERT_THAT(At(61), SizeIs(1));
  EXPECT_EQ(At(61)[0].count, 3u) << "room for more has been there for a shorter time";
  kind().fits = 0;
  EXPECT_THAT(At(62), IsEmpty());
  kind().fits = 5;
  EXPECT_THAT(At(63), IsEmpty());
  ASSERT_THAT(At(93), SizeIs(1));
  EXPECT_EQ(At(93)[0].count, 4u) << "no more than max";
  EXPECT_EQ(At(93)[0].reason, "grows from 2 to 4 groups: cloud has room");
}

TEST_F(GroupCountTest, ShrinksIfAGroupFindsNoRoom) {
  kind().placed = 1;
  kind().lacking = 1;
  EXPECT_THAT(At(0), IsEmpty());
  EXPECT_THAT(At(29), IsEmpty());
  ASSERT_THAT(At(31), SizeIs(1));
  EXPECT_EQ(At(31)[0].count, 1u);
  EXPECT_EQ(At(31)[0].reason, "shrinks from 2 to 1 group: cloud has had no room for 1 of them for 31s");
  kind().min = 2;
  EXPECT_THAT(At(40), IsEmpty()) << "no fewer than min";
}

// Only as many groups go as have lacked room all the time.
TEST_F(GroupCountTest, TakesTheLeastLack) {
  kind() = Kind(4, 1, 4);
  kind().placed = 3;
  kind().lacking = 1;
  EXPECT_THAT(At(0), IsEmpty());
  kind().placed = 1;
  kind().lacking = 3;
  EXPECT_THAT(At(1), IsEmpty());
  ASSERT_THAT(At(30), SizeIs(1));
  EXPECT_EQ(At(30)[0].count, 3u);
  EXPECT_EQ(At(30)[0].reason, "shrinks from 4 to 3 groups: cloud has had no room for 1 of them for 30s");
}

TEST_F(GroupCountTest, AddsFewerIfThatIsRefused) {
  job_.kinds = {Kind(2, 1, 4), Kind(1, 1, 3), Kind(3, 1, 3)};
  std::vector<Resize> changes = {{0, 4, "grows"}, {1, 2, "grows"}, {2, 1, "shrinks"}};
  ASSERT_TRUE(AddFewer(job_, changes));
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].count, 4u);
  EXPECT_EQ(changes[1].reason, "shrinks");
  ASSERT_TRUE(AddFewer(job_, changes));
  EXPECT_EQ(changes[0].count, 3u);
  EXPECT_EQ(changes[0].reason, "grows from 2 to 3 groups: cloud has room");
  ASSERT_TRUE(AddFewer(job_, changes));
  EXPECT_THAT(changes, SizeIs(1));
  EXPECT_FALSE(AddFewer(job_, changes));
}

// If no group runs, nothing is gained by fewer groups: the job waits in the queue.
TEST_F(GroupCountTest, AJobThatLostAllRoomWaits) {
  kind().placed = 0;
  kind().lacking = 2;
  EXPECT_THAT(At(0), IsEmpty());
  EXPECT_THAT(At(100), IsEmpty());
}

// A group that starts again is neither a lack nor room.
TEST_F(GroupCountTest, ARestartCausesNoChange) {
  kind().placed = 1;
  job_.is_steady = false;
  kind().fits = 1;
  for (int second = 0; second < 200; ++second) EXPECT_THAT(At(second), IsEmpty());
  job_.is_steady = true;
  kind().placed = 2;
  EXPECT_THAT(At(200), IsEmpty());
  EXPECT_THAT(At(230), SizeIs(1));
}

TEST_F(GroupCountTest, PausesBetweenTwoChanges) {
  job_.changed_at = absl::Seconds(0);
  kind().fits = 1;
  EXPECT_THAT(At(0), IsEmpty());
  EXPECT_THAT(At(59), IsEmpty());
  EXPECT_THAT(At(60), SizeIs(1));
}

// The number that a user chose stays until lack of room forces the coordinator to take groups away.
TEST_F(GroupCountTest, AUsersNumberStays) {
  watch_.chosen = true;
  kind().fits = 1;
  EXPECT_THAT(At(0), IsEmpty());
  EXPECT_THAT(At(100), IsEmpty());
  kind().fits = 0;
  kind().placed = 1;
  kind().lacking = 1;
  EXPECT_THAT(At(101), IsEmpty());
  EXPECT_THAT(At(131), SizeIs(1));
  kind() = Kind(1, 1, 4);
  kind().fits = 1;
  EXPECT_THAT(At(132), IsEmpty());
  EXPECT_THAT(At(162), SizeIs(1));
}

TEST_F(GroupCountTest, AddsNoGroupToAJobThatSoonEnds) {
  kind().fits = 1;
  job_.ends_at = absl::Seconds(80);
  EXPECT_THAT(At(0), IsEmpty());
  EXPECT_THAT(At(30), IsEmpty());
}

TEST_F(GroupCountTest, BeginsWithWhatFits) {
  job_.has_started = job_.is_steady = false;
  watch_.chosen = true;
  const auto waits_at = [this](int second) {
    return WaitsToBegin(job_, absl::MakeConstSpan(&watch_, 1), absl::Seconds(second), kOptions);
  };
  kind() = {"", 3, 1, 4, 2, 1};
  EXPECT_THAT(At(0), IsEmpty()) << "more workers may come";
  EXPECT_TRUE(waits_at(0));
  job_.others_leave = true;
  EXPECT_THAT(At(5), IsEmpty()) << "others make room";
  EXPECT_TRUE(waits_at(5));
  job_.others_leave = false;
  EXPECT_FALSE(waits_at(5));
  ASSERT_THAT(At(5), SizeIs(1));
  EXPECT_FALSE(watch_.chosen) << "the lack of room has overruled it";
  EXPECT_EQ(At(5)[0].reason, "begins with 2 groups instead of 3: the cluster has room for no more");
  kind().placed = 0;
  kind().lacking = 3;
  EXPECT_THAT(At(5), IsEmpty()) << "fewer than min";
  EXPECT_FALSE(waits_at(5));
  kind() = {"", 3, 1, 4, 3, 0, 1};
  EXPECT_THAT(At(50), IsEmpty()) << "more than count come later";
  EXPECT_FALSE(waits_at(50));
}

TEST_F(GroupCountTest, EachKindHasItsOwnRoom) {
  job_.kinds = {Kind(2, 0, 0), Kind(2, 1, 2), Kind(1, 1, 3)};
  job_.kinds[0].lacking = job_.kinds[1].lacking = 1;
  job_.kinds[2].fits = 1;
  job_.kinds[2].site = "hpc";
  std::vector<KindWatch> watch(3);
  EXPECT_THAT(NextCounts(job_, absl::MakeSpan(watch), absl::Seconds(0), kOptions), IsEmpty());
  const std::vector<Resize> changes = NextCounts(job_, absl::MakeSpan(watch), absl::Seconds(30), kOptions);
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].kind, 1u);
  EXPECT_EQ(changes[0].count, 1u);
  EXPECT_EQ(changes[1].kind, 2u);
  EXPECT_THAT(changes[1].reason, HasSubstr("grows from 1 to 2 groups: hpc has room"));
}

// Room comes and goes at random. The number of groups stays within its limits, and two changes are at least a pause
// apart.
TEST_F(GroupCountTest, NeverFlaps) {
  int changes = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&random](uint32_t least, uint32_t most) {
      return std::uniform_int_distribution<uint32_t>(least, most)(random);
    };
    watch_ = {};
    const uint32_t min = pick(1, 3), max = pick(min, 6);
    uint32_t count = pick(min, max), room = pick(0, 8);
    job_.has_started = false;
    job_.changed_at = -absl::InfiniteDuration();
    for (int second = 0; second < 1000; ++second) {
      if (pick(1, 25) == 1) room = pick(0, 8);
      const uint32_t placed = std::min(room, count);
      kind() = {"cloud", count, min, max, placed, count - placed, room - placed};
      job_.is_steady = pick(1, 10) > 1;
      const std::vector<Resize> resizes = At(second);
      const bool begins = !job_.has_started;
      job_.has_started = job_.has_started || placed > 0;
      if (resizes.empty()) continue;
      ASSERT_TRUE(begins || absl::Seconds(second) - job_.changed_at >= kOptions.pause) << "seed " << seed;
      count = resizes[0].count;
      ASSERT_GE(count, min);
      ASSERT_LE(count, max);
      job_.changed_at = absl::Seconds(second);
      ++changes;
    }
  }
  EXPECT_GT(changes, 300);
}

}  // namespace
}  // namespace hooke
