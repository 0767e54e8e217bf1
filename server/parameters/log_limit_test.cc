#include "server/parameters/log_limit.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// At most `lines_max` lines are written in a period. The first line of the next period says how many are missing.
TEST(LogLimit, CountsWhatItLeavesOut) {
  LogLimit limit(2, absl::Seconds(10));
  const absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(limit.Take(now), 0u);
  EXPECT_EQ(limit.Take(now), 0u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limit.Take(now + absl::Seconds(9)), std::nullopt);
  EXPECT_EQ(limit.Take(now + absl::Seconds(10)), 5u);
  EXPECT_EQ(limit.Take(now + absl::Seconds(11)), 0u);
  EXPECT_EQ(limit.Take(now + absl::Seconds(12)), std::nullopt);
}

}  // namespace
}  // namespace hooke
