#include "algorithms/pace.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace hooke {
namespace {

TEST(PaceTest, Intervals) {
  struct Row {
    uint64_t base;
    double own, fastest;
    uint64_t interval;
  };
  const Row rows[] = {
      {64, 10, 10, 64}, {64, 5, 10, 32}, {64, 1, 3, 21},   {16, 2, 3, 11},   {16, 0.01, 10, 1},      {1, 1, 10, 1},
      {64, 0, 10, 64},  {64, 10, 0, 64}, {64, 12, 10, 64}, {64, -1, 10, 64}, {64, 1e-300, 1e300, 1},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(PacedInterval(row.base, row.own, row.fastest), row.interval) << row.own << " of " << row.fastest;
  }
  EXPECT_EQ(PacedInterval(64, std::numeric_limits<double>::quiet_NaN(), 10), 64u);
}

// A speed that was reported long ago does not count: its group may have died or slowed down since.
TEST(PaceTest, TheFastestOfLate) {
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  const absl::Duration memory = absl::Minutes(1);
  EXPECT_EQ(FastestPace({}, now, memory), 0);
  EXPECT_EQ(FastestPace({GroupPace{}, GroupPace{}}, now, memory), 0);
  const std::vector<GroupPace> paces = {{5, now - absl::Seconds(1)}, {9, now - absl::Seconds(61)}, {7, now}, {}};
  EXPECT_EQ(FastestPace(paces, now, memory), 7);
  EXPECT_EQ(FastestPace(paces, now - absl::Seconds(1), memory), 9);
}

TEST(PaceTest, Turns) {
  EXPECT_EQ(NextFragment({}), 0u);
  EXPECT_EQ(NextFragment({0, 0, 0, 0}), 0u);
  EXPECT_EQ(NextFragment({1, 0, 0, 0}), 1u);
  EXPECT_EQ(NextFragment({3, 3, 2, 2}), 2u);
  EXPECT_EQ(NextFragment({3, 3, 3, 3}), 0u);
  EXPECT_EQ(NextFragment({3, 4, 2, 2}), 2u) << "one that a latecomer had by itself is not had again";
  EXPECT_EQ(NextFragment({3, 4, 3, 3}), 0u);
  EXPECT_EQ(NextFragment({4, 4, 4, std::numeric_limits<uint64_t>::max()}), 0u) << "an empty one has no turn";
}

}  // namespace
}  // namespace hooke
