#include "server/cluster/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using absl::StatusCode;

GroupRecord Running(uint32_t failures, uint64_t best_step = 0, bool evaluation = false) {
  GroupRecord group;
  group.group = 1;
  group.state = v1::GROUP_STATE_RUNNING;
  group.failures = failures;
  group.incarnation = 41;
  group.best_step = best_step;
  if (evaluation) group.task = v1::GroupStart::EVALUATE;
  return group;
}

// Returns a running group that has ended with this cause `repeats` times in a row.
GroupRecord RunningAfter(uint32_t repeats, const std::string& cause, uint64_t best_step) {
  GroupRecord group = Running(repeats, best_step);
  group.repeats = repeats;
  group.cause = cause;
  return group;
}

struct EndCase {
  const char* name;
  GroupRecord group;
  GroupOutcome outcome;
  v1::GroupState state;
  absl::Duration wait;
  uint32_t failures;
  const char* reason;
};

const EndCase kEnds[] = {
    {"ok",
     Running(3),
     {true, StatusCode::kUnknown, "", 10},
     v1::GROUP_STATE_FINISHED,
     absl::InfiniteDuration(),
     0,
     "finished"},
    {"first failure",
     Running(0),
     {false, StatusCode::kAborted, "rank 1 was killed by signal 9", 10},
     v1::GROUP_STATE_WAITING,
     absl::Milliseconds(500),
     1,
     "failed (rank 1 was killed by signal 9); starts again in 500ms as start 42"},
    {"third in a row",
     Running(2, 10),
     {false, StatusCode::kUnavailable, "x", 10},
     v1::GROUP_STATE_WAITING,
     absl::Seconds(2),
     3,
     "failed (x); starts again in 2s as start 42, after 3 failures in a row"},
    {"a new step begins a new row",
     Running(8, 10),
     {false, StatusCode::kUnavailable, "x", 11},
     v1::GROUP_STATE_WAITING,
     absl::Milliseconds(500),
     1,
     "failed (x); starts again in 500ms as start 42"},
    {"the wait is bounded",
     Running(8, 10),
     {false, StatusCode::kInternal, "x", 10},
     v1::GROUP_STATE_WAITING,
     absl::Seconds(30),
     9,
     "failed (x); starts again in 30s as start 42, after 9 failures in a row"},
    {"tenth in a row",
     Running(9, 10),
     {false, StatusCode::kInternal, "x", 10},
     v1::GROUP_STATE_FAILED,
     absl::InfiniteDuration(),
     10,
     "group 1 failed 10 times in a row without a new step; the last time: x; see its log (`hooke logs`) and mend "
     "that, then submit the job again"},
    {"the third end in the same way",
     RunningAfter(2, "cannot open /d", 10),
     {false, StatusCode::kInternal, "cannot open /d", 10, 0, "cannot open /d"},
     v1::GROUP_STATE_HELD,
     absl::InfiniteDuration(),
     3,
     "held: it ended 3 times in a row in the same way at step 10: cannot open /d"},
    {"the second end in the same way",
     RunningAfter(1, "cannot open /d", 10),
     {false, StatusCode::kInternal, "cannot open /d", 10, 0, "cannot open /d"},
     v1::GROUP_STATE_WAITING,
     absl::Seconds(1),
     2,
     "failed (cannot open /d); starts again in 1s as start 42, after 2 failures in a row"},
    {"the third end, in another way",
     RunningAfter(2, "cannot open /d", 10),
     {false, StatusCode::kInternal, "no memory", 10, 0, "no memory"},
     v1::GROUP_STATE_WAITING,
     absl::Seconds(2),
     3,
     "failed (no memory); starts again in 2s as start 42, after 3 failures in a row"},
    {"the third end in the same way, after a step",
     RunningAfter(2, "cannot open /d", 10),
     {false, StatusCode::kInternal, "cannot open /d", 11, 0, "cannot open /d"},
     v1::GROUP_STATE_WAITING,
     absl::Milliseconds(500),
     1,
     "failed (cannot open /d); starts again in 500ms as start 42"},
    {"bad argument",
     Running(0),
     {false, StatusCode::kInvalidArgument, "bad", 0},
     v1::GROUP_STATE_FAILED,
     absl::InfiniteDuration(),
     1,
     "group 1 failed at step 0: bad"},
    {"no data",
     Running(0),
     {false, StatusCode::kNotFound, "no file /d", 0},
     v1::GROUP_STATE_FAILED,
     absl::InfiniteDuration(),
     1,
     "group 1 failed at step 0: no file /d"},
    {"layout",
     Running(0),
     {false, StatusCode::kFailedPrecondition, "differs", 0},
     v1::GROUP_STATE_FAILED,
     absl::InfiniteDuration(),
     1,
     "group 1 failed at step 0: differs"},
    {"corrupt data",
     Running(0),
     {false, StatusCode::kDataLoss, "crc", 7},
     v1::GROUP_STATE_FAILED,
     absl::InfiniteDuration(),
     1,
     "group 1 failed at step 7: crc"},
    {"a server is away, after nine failures",
     Running(9, 10),
     {false, StatusCode::kUnavailable, "x", 10, 1},
     v1::GROUP_STATE_WAITING,
     absl::Milliseconds(500),
     9,
     "failed (x); starts again in 500ms as start 42"},
    {"a server is away for long",
     Running(0, 10),
     {false, StatusCode::kUnavailable, "x", 10, 1000},
     v1::GROUP_STATE_WAITING,
     absl::Seconds(30),
     0,
     "failed (x); starts again in 30s as start 42, after 1000 failures in a row"},
    {"UNAVAILABLE for another reason",
     Running(9, 10),
     {false, StatusCode::kUnavailable, "x", 10},
     v1::GROUP_STATE_FAILED,
     absl::InfiniteDuration(),
     10,
     "group 1 failed 10 times in a row without a new step; the last time: x; see its log (`hooke logs`) and mend "
     "that, then submit the job again"},
    {"a server that cannot mend it",
     Running(0),
     {false, StatusCode::kDataLoss, "crc", 0, 1},
     v1::GROUP_STATE_FAILED,
     absl::InfiniteDuration(),
     1,
     "group 1 failed at step 0: crc"},
    {"evaluation without result",
     Running(0, 0, true),
     {true, StatusCode::kUnknown, "", 0},
     v1::GROUP_STATE_WAITING,
     absl::Milliseconds(500),
     1,
     "failed (it ended without a result); starts again in 500ms as start 42"},
};

// After its end a group is finished, starts again after a wait that grows up to a bound, is held, or fails its job.
TEST(LifecycleTest, DecidesWhatFollowsAGroupsEnd) {
  for (const EndCase& c : kEnds) {
    const GroupDecision decision = AfterGroupEnd(c.group, c.outcome, RestartOptions());
    EXPECT_EQ(decision.state, c.state) << c.name;
    EXPECT_EQ(decision.failures, c.failures) << c.name;
    EXPECT_EQ(decision.reason, c.reason) << c.name;
    if (decision.state == v1::GROUP_STATE_WAITING) {
      EXPECT_EQ(decision.wait, c.wait) << c.name;
    }
  }
}

// A lost group starts again: after its first loss at once, later after a wait that doubles up to a bound. A new step or
// long work resets the count of losses. Too many losses in a row fail the job, with a reason that says so.
TEST(LifecycleTest, DecidesWhatFollowsAGroupsLoss) {
  const std::string hopeless =
      "group 1 failed 10 times in a row without a new step; the last time: lost, for its node went; see whether that "
      "node has enough memory and a steady network, then submit the job again";
  struct {
    const char* name;
    GroupRecord group;
    uint64_t step;
    absl::Duration worked;
    v1::GroupState state;
    absl::Duration wait;
    uint32_t failures;
    uint64_t best_step;
    std::string reason;
  } cases[] = {
      {"first", Running(0), 0, {}, v1::GROUP_STATE_WAITING, {}, 1, 0, "at once as start 42"},
      {"second",
       Running(1),
       0,
       {},
       v1::GROUP_STATE_WAITING,
       absl::Milliseconds(500),
       2,
       0,
       "in 500ms as start 42, after 2 failures in a row"},
      {"third",
       Running(2, 7),
       7,
       {},
       v1::GROUP_STATE_WAITING,
       absl::Seconds(1),
       3,
       7,
       "in 1s as start 42, after 3 failures in a row"},
      {"bounded",
       Running(8, 7),
       6,
       {},
       v1::GROUP_STATE_WAITING,
       absl::Seconds(30),
       9,
       7,
       "in 30s as start 42, after 9 failures in a row"},
      {"a new step", Running(9, 7), 8, {}, v1::GROUP_STATE_WAITING, {}, 1, 8, "at once as start 42"},
      {"short work", Running(1, 7), 7, absl::Seconds(299), v1::GROUP_STATE_WAITING, absl::Milliseconds(500), 2, 7,
       "in 500ms as start 42, after 2 failures in a row"},
      {"long work", Running(9, 7), 7, absl::Minutes(5), v1::GROUP_STATE_WAITING, {}, 1, 7, "at once as start 42"},
      {"tenth", Running(9, 7), 7, {}, v1::GROUP_STATE_FAILED, {}, 10, 7, hopeless},
  };
  for (const auto& c : cases) {
    const GroupDecision decision = AfterGroupLost(c.group, {"its node went", c.step, c.worked}, RestartOptions());
    EXPECT_EQ(decision.state, c.state) << c.name;
    EXPECT_EQ(decision.failures, c.failures) << c.name;
    EXPECT_EQ(decision.best_step, c.best_step) << c.name;
    if (decision.state == v1::GROUP_STATE_FAILED) {
      EXPECT_EQ(decision.reason, c.reason) << c.name;
    } else {
      EXPECT_EQ(decision.reason, "lost (its node went); starts again " + c.reason) << c.name;
      EXPECT_EQ(decision.wait, c.wait) << c.name;
    }
  }
}

JobRecord Job(v1::JobState state, const std::vector<v1::GroupState>& groups, bool evaluation = false) {
  JobRecord job;
  job.state = state;
  for (v1::GroupState group_state : groups) {
    GroupRecord group;
    group.group = job.groups.size();
    group.state = group_state;
    group.reason = "group's reason";
    job.groups.push_back(group);
  }
  if (evaluation) job.groups.back().task = v1::GroupStart::EVALUATE;
  return job;
}

JobRecord CommandJob(v1::JobState state, const std::vector<v1::GroupState>& groups) {
  JobRecord job = Job(state, groups);
  job.spec.mutable_command()->add_arguments("sh");
  return job;
}

// A job runs once its first group is placed. It is evaluated after its last group has finished, and succeeds after
// that. A group that cannot be mended fails the job. A job with a command has nothing to evaluate.
TEST(LifecycleTest, DecidesWhatGroupsMakeOfTheirJob) {
  constexpr auto kWaiting = v1::GROUP_STATE_WAITING;
  constexpr auto kStarting = v1::GROUP_STATE_STARTING;
  constexpr auto kFinished = v1::GROUP_STATE_FINISHED;
  constexpr auto kFailed = v1::GROUP_STATE_FAILED;
  struct {
    const char* name;
    JobRecord job;
    v1::JobState state;
    bool evaluate;
  } cases[] = {
      {"none placed", Job(v1::JOB_STATE_QUEUED, {kWaiting, kWaiting}), v1::JOB_STATE_UNSPECIFIED, false},
      {"first placed", Job(v1::JOB_STATE_QUEUED, {kStarting, kWaiting}), v1::JOB_STATE_RUNNING, false},
      {"running already", Job(v1::JOB_STATE_RUNNING, {kStarting, kFinished}), v1::JOB_STATE_UNSPECIFIED, false},
      {"all finished", Job(v1::JOB_STATE_RUNNING, {kFinished, kFinished}), v1::JOB_STATE_EVALUATING, true},
      {"evaluating", Job(v1::JOB_STATE_EVALUATING, {kFinished, kWaiting}, true), v1::JOB_STATE_UNSPECIFIED, false},
      {"evaluated", Job(v1::JOB_STATE_EVALUATING, {kFinished, kFinished}, true), v1::JOB_STATE_SUCCEEDED, false},
      {"command finished", CommandJob(v1::JOB_STATE_RUNNING, {kFinished, kFinished}), v1::JOB_STATE_SUCCEEDED, false},
      {"command runs", CommandJob(v1::JOB_STATE_RUNNING, {kFinished, kStarting}), v1::JOB_STATE_UNSPECIFIED, false},
      {"one failed", Job(v1::JOB_STATE_RUNNING, {kStarting, kFailed}), v1::JOB_STATE_FAILED, false},
      {"ended", Job(v1::JOB_STATE_CANCELLED, {kFinished, kFailed}), v1::JOB_STATE_UNSPECIFIED, false},
  };
  for (const auto& c : cases) {
    const JobDecision decision = AfterGroupChange(c.job);
    EXPECT_EQ(decision.state, c.state) << c.name;
    EXPECT_EQ(decision.start_evaluation, c.evaluate) << c.name;
    EXPECT_EQ(decision.reason.empty(), c.state == v1::JOB_STATE_UNSPECIFIED) << c.name;
  }
}

// A group that cannot begin with the new number of groups is held. Once it has made a step, such an error fails the
// job.
TEST(LifecycleTest, ANumberOfGroupsThatCannotBeginIsHeld) {
  GroupRecord group;
  GroupOutcome outcome;
  outcome.code = absl::StatusCode::kInvalidArgument;
  outcome.message = "too few samples";
  outcome.step = 40;
  EXPECT_EQ(AfterGroupEnd(group, outcome, {}).state, v1::GROUP_STATE_FAILED) << "the number never changed";
  outcome.began_at = 40;
  EXPECT_EQ(AfterGroupEnd(group, outcome, {}).state, v1::GROUP_STATE_HELD);
  outcome.step = 41;
  EXPECT_EQ(AfterGroupEnd(group, outcome, {}).state, v1::GROUP_STATE_FAILED);
  outcome.step = 40;
  group.task = v1::GroupStart::EVALUATE;
  EXPECT_EQ(AfterGroupEnd(group, outcome, {}).state, v1::GROUP_STATE_FAILED);
}

}  // namespace
}  // namespace hooke
