#include "server/dashboard/job_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::ElementsAre;

class JobEventsTest : public CoordinatorFixture {
 protected:
  // Returns "KIND GROUP" of each event.
  std::vector<std::string> Kinds(const std::string& job) {
    std::vector<std::string> kinds;
    for (const JobEvent& event : EventsIn(Log(job))) {
      kinds.push_back(absl::StrCat(event.kind, event.group.has_value() ? absl::StrCat(" ", *event.group) : ""));
    }
    return kinds;
  }
};

// Whatever happens to a real job is an event of its kind: starts, a death with its reason, the end.
TEST_F(JobEventsTest, OfAJobThatLosesAGroup) {
  FakeWorker worker("w", 8);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  const std::string job = Submit({2, 2});
  Pass(absl::Seconds(1), {&worker});
  const GroupKey dead = {job, 1, 1};
  worker.Progress(dead, 5, now_);
  worker.Log(dead, "2020-01-01T00:00:00.000Z coordinator group 0 at step 1: failed (a lie of a rank)", now_);
  worker.End(dead, absl::UnavailableError("rank 0 was killed by signal 9"), now_);
  Pass(absl::Seconds(10), {&worker});
  EXPECT_THAT(Kinds(job),
              ElementsAre("notice", "notice", "start 0", "notice", "start 1", "notice", "death 1", "start 1"));
  const std::vector<JobEvent> events = EventsIn(Log(job));
  EXPECT_TRUE(absl::StrContains(events[6].text, "killed by signal 9")) << events[6].text;
  EXPECT_GE(events[6].unix_ms, absl::ToUnixMillis(now_.wall) - 20000);
  ASSERT_TRUE(coordinator_->Cancel(job, now_).ok());
  EXPECT_EQ(Kinds(job).back(), "end");
}

// A failed rank is a death, too. That a start goes on well is no event. What is no line of a log is left out.
TEST(JobEventsTextTest, Lines) {
  const std::string at = "2026-01-02T03:04:05.006Z ";
  const std::vector<JobEvent> events = EventsIn(
      at + "coordinator group 12 rank 3 failed: no data\n" + at + "coordinator group 0 rank 0 is there (pid 5)\n" + at +
      "coordinator group 0 rank 0 is done at step 9\n" + at + "coordinator group 0 started (launcher pid 5)\n" + at +
      "worker-1 coordinator says\nnothing\n\n" + at + "coordinator job failed: group 0 failed\n" + at +
      "coordinator group 1 at step 4: finished\n" + at + "coordinator group 2 at step 4: lost (worker w); starts\n");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_STREQ(events[0].kind, "death");
  EXPECT_EQ(events[0].group, 12u);
  EXPECT_EQ(events[0].unix_ms, 1767323045006);
  EXPECT_STREQ(events[1].kind, "death");
  EXPECT_FALSE(events[1].group.has_value());
  EXPECT_STREQ(events[2].kind, "end");
  EXPECT_STREQ(events[3].kind, "death");
}

}  // namespace
}  // namespace hooke
