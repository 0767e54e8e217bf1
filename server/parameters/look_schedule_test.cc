#include "server/parameters/look_schedule.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

// The next look is at the earliest time that was asked for.
TEST(LookSchedule, HasTheEarliestTime) {
  LookSchedule looks;
  EXPECT_EQ(looks.next(), absl::InfiniteFuture());
  looks.LookBy(At(5));
  looks.LookBy(At(3));
  looks.LookBy(At(9));
  EXPECT_EQ(looks.next(), At(3));
}

// A look sets the time anew from what was asked for meanwhile, but not before it ends.
TEST(LookSchedule, ALookSetsTheTimeAnew) {
  LookSchedule looks;
  looks.LookBy(At(3));
  const uint64_t look = looks.Begin();
  looks.LookBy(At(7));
  EXPECT_EQ(looks.next(), At(3));
  looks.End(look);
  EXPECT_EQ(looks.next(), At(7));
  looks.End(looks.Begin());
  EXPECT_EQ(looks.next(), absl::InfiniteFuture());
}

// Two looks may go on at the same time. The one that began first may have passed a block before the second began. So
// only the second one sets the time of the next look.
TEST(LookSchedule, TheLastLookToBeginSetsTheTime) {
  for (const bool in_order : {true, false}) {
    LookSchedule looks;
    looks.LookBy(At(3));
    const uint64_t first = looks.Begin();
    looks.LookBy(At(5));
    const uint64_t second = looks.Begin();
    looks.LookBy(At(7));
    looks.End(in_order ? first : second);
    EXPECT_EQ(looks.next(), in_order ? At(3) : At(7));
    looks.End(in_order ? second : first);
    EXPECT_EQ(looks.next(), At(7));
  }
}

}  // namespace
}  // namespace hooke
