#include "client/history/time_shares.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

v1::HistoryPoint Point(int64_t unix_ms, uint64_t computing, uint64_t collectives, uint64_t exchanging) {
  v1::HistoryPoint point;
  point.set_unix_ms(unix_ms);
  point.set_computing_ms(computing);
  point.set_collectives_ms(collectives);
  point.set_exchanging_ms(exchanging);
  return point;
}

void ExpectShares(const std::optional<TimeShares>& shares, double compute, double collective, double exchange) {
  ASSERT_TRUE(shares.has_value());
  EXPECT_DOUBLE_EQ(shares->compute, compute);
  EXPECT_DOUBLE_EQ(shares->collective, collective);
  EXPECT_DOUBLE_EQ(shares->exchange, exchange);
}

// The times of a point add up from the group's start. So the difference of two points says how the time between them
// was spent.
TEST(TimeSharesTest, AreThoseBetweenTwoPoints) {
  const v1::HistoryPoint first = Point(1000, 300, 0, 100);
  ExpectShares(TimeSharesBetween(nullptr, first), 0.75, 0, 0.25);
  const v1::HistoryPoint second = Point(2000, 600, 200, 600);
  ExpectShares(TimeSharesBetween(&first, second), 0.3, 0.2, 0.5);
}

// If the shares of a long time do not add up to 1, the rest is lost time. A rest of less than a second is scaled away,
// because two reports may have been on their way for different times.
TEST(TimeSharesTest, MayLeaveARest) {
  const v1::HistoryPoint first = Point(1000, 1000, 0, 0);
  ExpectShares(TimeSharesBetween(&first, Point(2999, 2000, 0, 0)), 1, 0, 0);
  ExpectShares(TimeSharesBetween(&first, Point(5000, 2000, 1000, 0)), 0.25, 0.25, 0);
}

// The times of a group that was started again count from zero. The time in which it was down is in no share.
TEST(TimeSharesTest, BeginAnewWithTheGroup) {
  const v1::HistoryPoint before = Point(1000, 5000, 10, 10);
  ExpectShares(TimeSharesBetween(&before, Point(11000, 6000, 0, 3000)), 0.6, 0, 0.3);
}

// Points of an older coordinator have no times. Then there are no shares, not shares of zero.
TEST(TimeSharesTest, AreNotKnownOfOldPoints) {
  const v1::HistoryPoint old = Point(1000, 0, 0, 0), first = Point(2000, 10, 0, 0), again = Point(2000, 10, 0, 0);
  EXPECT_FALSE(TimeSharesBetween(nullptr, old).has_value());
  EXPECT_FALSE(TimeSharesBetween(&old, first).has_value());
  EXPECT_FALSE(TimeSharesBetween(&first, again).has_value()) << "no time went by";
}

}  // namespace
}  // namespace hooke
