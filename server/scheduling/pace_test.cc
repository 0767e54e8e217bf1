#include "server/scheduling/pace.h"

#include <gtest/gtest.h>

#include <limits>

namespace hooke {
namespace {

// The estimate goes on as the group went. Without steps, time or length there is none.
TEST(PaceTest, EstimatesTheTimeLeft) {
  EXPECT_EQ(TimeLeft({100, 200, 400, absl::Seconds(10)}), absl::Seconds(20));
  EXPECT_EQ(TimeLeft({100, 400, 400, absl::Seconds(10)}), absl::ZeroDuration());
  EXPECT_EQ(TimeLeft({100, 200, 400, absl::Seconds(4)}), std::nullopt);
  EXPECT_EQ(TimeLeft({100, 100, 400, absl::Seconds(10)}), std::nullopt);
  EXPECT_EQ(TimeLeft({100, 90, 400, absl::Seconds(10)}), std::nullopt);
  EXPECT_EQ(TimeLeft({100, 200, 0, absl::Seconds(10)}), std::nullopt);
  const uint64_t endless = std::numeric_limits<uint64_t>::max();
  EXPECT_GT(TimeLeft({1, 2, endless, absl::Seconds(10)}), absl::Hours(24));
}

}  // namespace
}  // namespace hooke
