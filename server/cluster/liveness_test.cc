#include "server/cluster/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

// A node that is not heard counts as alive for 4 s, then as silent, and after the lease as lost.
TEST(LivenessTest, SilenceGrowsIntoLoss) {
  const LivenessOptions options;
  struct {
    absl::Duration silence;
    Liveness liveness;
  } cases[] = {{absl::ZeroDuration(), Liveness::kAlive}, {absl::Milliseconds(3999), Liveness::kAlive},
               {absl::Seconds(4), Liveness::kSilent},    {absl::Milliseconds(9999), Liveness::kSilent},
               {absl::Seconds(10), Liveness::kLost},     {absl::Hours(1), Liveness::kLost},
               {absl::Seconds(-5), Liveness::kAlive}};
  for (const auto& c : cases) {
    EXPECT_EQ(LivenessOf(c.silence, options), c.liveness) << absl::FormatDuration(c.silence);
  }
}

// A long time between two ticks means that the coordinator was stopped, so UnlistenedGap returns it. After a short time
// it returns zero.
TEST(LivenessTest, NoticesThatNobodyListened) {
  EXPECT_EQ(UnlistenedGap(absl::Milliseconds(100)), absl::ZeroDuration());
  EXPECT_EQ(UnlistenedGap(absl::Seconds(60)), absl::Seconds(60));
}

// At a worker's hello only the groups that the records place there go on. All others are stopped, with a reason.
TEST(LivenessTest, AdoptsOnlyTheCurrentIncarnation) {
  JobRecord job;
  job.job_id = "a-1";
  job.state = v1::JOB_STATE_RUNNING;
  job.groups.resize(2);
  job.groups[0].state = v1::GROUP_STATE_RUNNING;
  job.groups[0].incarnation = 3;
  job.groups[0].parts = {{"w1"}};
  job.groups[1].state = v1::GROUP_STATE_WAITING;
  job.groups[1].incarnation = 1;
  JobRecord ended = job;
  ended.state = v1::JOB_STATE_CANCELLED;
  struct {
    const char* name;
    GroupKey running;
    const char* worker;
    const JobRecord* job;
    Adoption what;
    const char* reason;
  } cases[] = {
      {"current", {"a-1", 0, 3}, "w1", &job, Adoption::kAdopt, "it is the group's current start"},
      {"older", {"a-1", 0, 2}, "w1", &job, Adoption::kStop, "start 2 was replaced by start 3"},
      {"other worker's", {"a-1", 0, 3}, "w2", &job, Adoption::kStop, "it runs on worker w1"},
      {"given up", {"a-1", 1, 1}, "w1", &job, Adoption::kStop, "start 1 was given up"},
      {"no such group", {"a-1", 2, 1}, "w1", &job, Adoption::kStop, "the job has no such group"},
      {"job ended", {"a-1", 0, 3}, "w1", &ended, Adoption::kStop, "the job has ended"},
      {"unknown job", {"b-2", 0, 1}, "w1", nullptr, Adoption::kStop, "the coordinator knows no job b-2"},
  };
  for (const auto& c : cases) {
    const AdoptionDecision decision = AdoptGroup(c.running, c.worker, c.job);
    EXPECT_EQ(decision.what, c.what) << c.name;
    EXPECT_EQ(decision.reason, c.reason) << c.name;
  }
}

// A group that waits only because its worker was lost is taken back from that worker, and from no other. It is not
// taken back once it has a new start, or while the number of groups changes.
TEST(LivenessTest, TakesBackAGroupThatWasCutOff) {
  JobRecord job;
  job.job_id = "a-1";
  job.state = v1::JOB_STATE_RUNNING;
  job.groups.resize(1);
  job.groups[0].state = v1::GROUP_STATE_WAITING;
  job.groups[0].incarnation = 2;
  job.groups[0].parts = {{"w1"}};
  JobRecord held = job, again = job, changes = job, ended = job;
  held.groups[0].state = v1::GROUP_STATE_HELD;
  again.groups[0].incarnation = 3;
  changes.generations.wanted.emplace();
  ended.state = v1::JOB_STATE_FAILED;
  struct {
    const char* name;
    const char* worker;
    const JobRecord* job;
    bool cut_off;
    Adoption what;
  } cases[] = {
      {"cut off", "w1", &job, true, Adoption::kTakeBack},
      {"ended or told to leave", "w1", &job, false, Adoption::kStop},
      {"another worker", "w2", &job, true, Adoption::kStop},
      {"held", "w1", &held, true, Adoption::kStop},
      {"started again", "w1", &again, true, Adoption::kStop},
      {"the number changes", "w1", &changes, true, Adoption::kStop},
      {"job ended", "w1", &ended, true, Adoption::kStop},
  };
  for (const auto& c : cases) {
    const AdoptionDecision decision = AdoptGroup({"a-1", 0, 2}, c.worker, c.job, c.cut_off);
    EXPECT_EQ(decision.what, c.what) << c.name;
    EXPECT_NE(decision.reason, "") << c.name;
  }
}

}  // namespace
}  // namespace hooke
