#include "client/profile/profile_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace hooke {
namespace {

using testing::HasSubstr;

// One rank of one group: three all-reduces of 1 MiB, 0.1 ms each, and one barrier of 2 us.
ProfileSummary Example() {
  ProfileSummary summary;
  summary.groups = summary.ranks = 1;
  summary.step_ns = 1000000;
  ProfileRow reduce;
  reduce.operation = v1::ALL_REDUCE;
  reduce.fused = true;
  reduce.bytes_min = 1 << 20;
  reduce.bytes_max = (1 << 21) - 1;
  reduce.calls = 3;
  reduce.bytes = 3 << 20;
  reduce.time_ns = reduce.step_ns = 300000;
  reduce.min_ns = reduce.max_ns = 100000;
  reduce.buckets[{98304, 102400}] = 3;
  ProfileRow barrier;
  barrier.operation = v1::BARRIER;
  barrier.calls = 1;
  barrier.time_ns = barrier.step_ns = barrier.min_ns = barrier.max_ns = 2000;
  barrier.buckets[{1984, 2048}] = 1;
  summary.rows = {reduce, barrier};
  return summary;
}

// The table has exactly this text.
TEST(ProfileTableTest, ShowsTheCollectives) {
  ProfileSummary summary = Example();
  EXPECT_EQ(ProfileTable(summary),
            "1 rank of 1 group, together 0.001 s in steps\n"
            "OPERATION   BYTES        CALLS  ALL    MIN US  MEDIAN US  P99 US  GB/S  OF STEPS  FUSED\n"
            "all-reduce  1 MiB-2 MiB  3      3 MiB  100.0   100.0      100.0   10.5  30.0 %    yes\n"
            "barrier     0            1      0 B    2.0     2.0        2.0     -     0.2 %     no\n");
  summary.calls_left_out = 9;
  summary.rows[0].algorithms = {"ring"};
  summary.rows[0].bytes_max = summary.rows[0].bytes_min;  // An exact size.
  const std::string exact = ProfileTable(summary);
  EXPECT_THAT(exact, HasSubstr("steps; 9 calls had no room\n"));
  EXPECT_THAT(exact, HasSubstr("\nall-reduce  1048576  3 "));
  EXPECT_THAT(exact, HasSubstr("  FUSED  BY\n"));
  EXPECT_THAT(exact, HasSubstr("  yes    ring\n"));
}

// The largest size that can be counted has no size after it.
TEST(ProfileTableTest, ShowsExtremes) {
  ProfileSummary summary = Example();
  summary.rows[0].bytes_min = uint64_t{1} << 63;
  summary.rows[0].bytes_max = ~uint64_t{0};
  EXPECT_THAT(ProfileTable(summary), HasSubstr("\nall-reduce  8 EiB-  3 "));
  EXPECT_THAT(ProfileTable({}), HasSubstr("0 ranks of 0 groups, together 0 s in steps\n"));
}

TEST(StepSplitTableTest, ShowsShares) {
  StepSplit split;
  split.group = 2;
  split.ranks = 4;
  split.window_ns = 12340000000;
  split.compute_ns = 880;
  split.waiting_ns = 72;
  split.collective_ns = 14;
  split.exchange_ns = 34;
  split.collectives = 200;
  split.last_rank = 3;
  split.last_times = 142;
  EXPECT_EQ(StepSplitTable({split}),
            "GROUP  SECONDS  COMPUTE  WAITING  COLLECTIVE  EXCHANGE  LAST TO COME\n"
            "2      12.3     88.0 %   7.2 %    1.4 %       3.4 %     rank 3, 71.0 %\n");
  EXPECT_EQ(StepSplitTable({}),
            "no time of the last steps is known from all ranks of a group; try again in some seconds\n");
}

TEST(ServerCoresLineTest, NamesEachServer) {
  EXPECT_EQ(ServerCoresLine({{"a:1", 0.25}, {"b:1", 0.5}}), "Cores that the servers keep busy: a:1 0.25, b:1 0.50\n");
  EXPECT_EQ(ServerCoresLine({}), "");
}

}  // namespace
}  // namespace hooke
