#include "clocks/cores_used.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// The figure covers the window and forgets what was before it.
TEST(CoresUsedTest, CoversTheWindow) {
  CoresUsed cores(absl::Seconds(10));
  EXPECT_EQ(cores.Add(At(0), absl::Seconds(100)), 0);
  EXPECT_EQ(cores.Add(At(1), absl::Seconds(102)), 2);
  EXPECT_EQ(cores.Add(At(4), absl::Seconds(102)), 0.5);
  EXPECT_EQ(cores.Add(At(11), absl::Seconds(103)), 0.1);  // The mean since second 1: one CPU second in ten.
  EXPECT_EQ(cores.Add(At(40), absl::Seconds(106)), 3.0 / 29);
}

TEST(CoresUsedTest, TwoCallsAtOneMoment) {
  CoresUsed cores(absl::Seconds(10));
  cores.Add(At(0), absl::Seconds(1));
  EXPECT_EQ(cores.Add(At(0), absl::Seconds(1)), 0);
}

TEST(CoresUsedTest, CpuTimeOfThisProcessGrows) {
  const absl::Duration before = ProcessCpuTime();
  volatile uint64_t sum = 0;
  while (ProcessCpuTime() <= before) sum = sum + 1;
  EXPECT_GT(ProcessCpuTime(), absl::ZeroDuration());
}

}  // namespace
}  // namespace hooke
