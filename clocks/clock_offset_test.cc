#include "clocks/clock_offset.h"

#include <cstdlib>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace hooke {
namespace {

constexpr int64_t kOffset = 1700000000000000000;  // Unix time minus this machine's uptime.

// The estimated offset is never wrong by more than its bound. That holds however long either direction takes, and while
// the clocks drift apart by up to 200 ppm.
TEST(ClockOffsetTest, BoundHolds) {
  std::mt19937_64 random(3);
  for (const double drift : {-2e-4, 0.0, 2e-4}) {
    ClockOffset offset;
    int64_t now = 1000000000;
    const auto coordinator = [&](int64_t at) {
      return kOffset + at + static_cast<int64_t>(drift * static_cast<double>(at));
    };
    for (int i = 0; i < 1000; ++i) {
      const int64_t there = static_cast<int64_t>(random() % 2000000) + 1000;
      const int64_t back = static_cast<int64_t>(random() % 2000000) + 1000;
      offset.Add({now, coordinator(now + there), now + there + back});
      now += there + back + static_cast<int64_t>(random() % 2000000000);
      const auto best = offset.Best(now);
      ASSERT_TRUE(best.has_value());
      EXPECT_LE(std::abs(best->offset - (coordinator(now) - now)), best->error);
      EXPECT_LE(best->error, 4000000);
    }
  }
}

// The estimate comes from the quickest round trip, until that is so old that a slower one has a smaller bound.
TEST(ClockOffsetTest, QuickestCountsWhileItIsYoung) {
  ClockOffset offset;
  EXPECT_FALSE(offset.Best(0).has_value());
  offset.Add({1000, 50500, 2000});
  offset.Add({1000000, 2000000, 3000000});
  EXPECT_EQ(offset.Best(3000000)->offset, 50500 - 1500);
  const int64_t later = 100000000000;  // 100 s, in which clocks may drift apart by 20 ms.
  offset.Add({later, later + 1000000, later + 2000000});
  EXPECT_EQ(offset.Best(later + 2000000)->offset, 0);
}

// A round trip with impossible times, as from a broken peer, changes nothing.
TEST(ClockOffsetTest, IgnoresNonsense) {
  ClockOffset offset;
  offset.Add({2000, 5, 1000});
  offset.Add({-1, 5, 1000});
  offset.Add({1, std::numeric_limits<int64_t>::max(), 1000});
  offset.Add({1, std::numeric_limits<int64_t>::min(), 1000});
  EXPECT_FALSE(offset.Best(1000).has_value());
}

// Each process of a machine gives the machine's clock the same name.
TEST(ClockOffsetTest, MachineHasAName) {
  EXPECT_FALSE(MachineClockName().empty());
  EXPECT_LE(MachineClockName().size(), 128u);
  EXPECT_EQ(MachineClockName(), MachineClockName());
}

}  // namespace
}  // namespace hooke
