#include "server/cluster/keep_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns a job that ended `hours_ago`.
FinishedJob Job(uint64_t number, int hours_ago, uint64_t bytes = 0, bool may_go = true) {
  return {number, absl::Hours(hours_ago), bytes, may_go};
}

std::vector<uint64_t> Numbers(const std::vector<ForgetDecision>& decisions) {
  std::vector<uint64_t> numbers;
  numbers.reserve(decisions.size());
  for (const ForgetDecision& decision : decisions) numbers.push_back(decision.number);
  return numbers;
}

// Within all limits nothing is forgotten, and by default only the number of jobs is limited.
TEST(KeepLimits, Within) {
  EXPECT_THAT(ChooseForgotten({}, {}), IsEmpty());
  EXPECT_THAT(ChooseForgotten({Job(1, 900, uint64_t{1} << 50)}, {}), IsEmpty());
  KeepLimits limits;
  limits.jobs_max = 2;
  limits.age_max = absl::Hours(10);
  limits.bytes_max = 30;
  EXPECT_THAT(ChooseForgotten({Job(1, 10, 10), Job(2, 3, 20)}, limits), IsEmpty());
}

// If there are too many jobs, those that ended first go, whatever their numbers. If one of them may not go yet, no
// other job goes instead.
TEST(KeepLimits, Number) {
  KeepLimits limits;
  limits.jobs_max = 2;
  const auto chosen = ChooseForgotten({Job(1, 1), Job(2, 4), Job(3, 2), Job(4, 3)}, limits);
  EXPECT_THAT(Numbers(chosen), ElementsAre(2, 4));
  EXPECT_EQ(chosen[0].reason, "2 others have ended since");
  EXPECT_THAT(Numbers(ChooseForgotten({Job(1, 1), Job(2, 4, 0, false), Job(3, 2), Job(4, 3)}, limits)), ElementsAre(4));
}

// A job goes once its end is longer ago than the limit. Exactly at the limit it stays.
TEST(KeepLimits, Age) {
  KeepLimits limits;
  limits.age_max = absl::Hours(10);
  const auto chosen = ChooseForgotten({Job(1, 11), Job(2, 10), Job(3, 12, 0, false), Job(4, 20)}, limits);
  EXPECT_THAT(Numbers(chosen), ElementsAre(4, 1));
  EXPECT_EQ(chosen[0].reason, "it ended more than 10h ago");
  FinishedJob job = Job(2, 10);
  job.age += absl::Nanoseconds(1);
  EXPECT_THAT(Numbers(ChooseForgotten({job}, limits)), ElementsAre(2));
}

// If the centers have too many bytes, the oldest ones go until the rest fits. Jobs without a center free nothing, so
// they stay.
TEST(KeepLimits, Bytes) {
  KeepLimits limits;
  limits.bytes_max = 50;
  const auto chosen = ChooseForgotten({Job(1, 5, 30), Job(2, 6), Job(3, 4, 30), Job(4, 3, 20)}, limits);
  EXPECT_THAT(Numbers(chosen), ElementsAre(1));
  EXPECT_EQ(chosen[0].reason, "the centers of finished jobs take 80 bytes, and at most 50 are kept");
  EXPECT_THAT(ChooseForgotten({Job(1, 5, 30, false), Job(3, 4, 30), Job(4, 3, 20)}, limits), IsEmpty());
  limits.bytes_max = 0;
  EXPECT_THAT(Numbers(ChooseForgotten({Job(1, 5, 30), Job(2, 6), Job(3, 4, 30, false)}, limits)), ElementsAre(1));
}

// The bytes of jobs that are forgotten for their age are free before the limit of bytes is checked. So no further job
// is forgotten for its bytes here.
TEST(KeepLimits, AllLimits) {
  KeepLimits limits;
  limits.age_max = absl::Hours(10);
  limits.bytes_max = 50;
  const auto chosen = ChooseForgotten({Job(1, 11, 100), Job(2, 9, 30), Job(3, 8, 20)}, limits);
  EXPECT_THAT(Numbers(chosen), ElementsAre(1));
  EXPECT_THAT(chosen[0].reason, HasSubstr("10h"));
}

}  // namespace
}  // namespace hooke
