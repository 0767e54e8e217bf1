#include "worker/daemon/progress_filter.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// All of rank 0's reports pass. Of another rank pass the first, those that name servers it misses, and the one that
// says that it misses none any more.
TEST(ProgressFilterTest, PassesOnWhatTheCoordinatorUses) {
  ProgressFilter filter;
  v1::RankProgress well, misses;
  well.set_step(5);
  misses.add_absent_servers()->set_address("a:1");
  EXPECT_TRUE(filter.MustPass(0, well));
  EXPECT_TRUE(filter.MustPass(0, well));
  EXPECT_TRUE(filter.MustPass(1, well));
  EXPECT_FALSE(filter.MustPass(1, well));
  EXPECT_TRUE(filter.MustPass(1, misses));
  EXPECT_TRUE(filter.MustPass(1, misses));
  EXPECT_TRUE(filter.MustPass(2, well));
  EXPECT_FALSE(filter.MustPass(2, well));
  EXPECT_TRUE(filter.MustPass(1, well));
  EXPECT_FALSE(filter.MustPass(1, well));
  EXPECT_TRUE(filter.MustPass(0, misses));
  EXPECT_TRUE(filter.MustPass(0, well));
}

}  // namespace
}  // namespace hooke
