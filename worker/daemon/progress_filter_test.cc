#include "worker/daemon/progress_filter.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// The filter passes every report of rank 0. From another rank it passes the first report, and each one that names
// missing servers. It also passes the first one afterwards that names none.
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

TEST(ProgressFilterTest, KeepsTheLastReportThatDidNotPass) {
  ProgressFilter filter;
  v1::RankProgress progress;
  EXPECT_TRUE(filter.MustPass(1, progress));
  EXPECT_FALSE(filter.TakeDropped(1).has_value()) << "it passed";
  for (const uint64_t step : {6, 7}) {
    progress.set_step(step);
    EXPECT_FALSE(filter.MustPass(1, progress));
  }
  EXPECT_FALSE(filter.TakeDropped(0).has_value());
  EXPECT_EQ(filter.TakeDropped(1)->step(), 7u);
  EXPECT_FALSE(filter.TakeDropped(1).has_value());
}

}  // namespace
}  // namespace hooke
