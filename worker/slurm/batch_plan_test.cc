// Which batch jobs a site submits and ends, in virtual time.

#include "worker/slurm/batch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = BatchJob::State;

constexpr absl::Duration kTurn = absl::Seconds(2);

const char* WhyText(BatchPlan::Lost::Why why) {
  switch (why) {
    case BatchPlan::Lost::Why::kNoWorkers:
      return "";
    case BatchPlan::Lost::Why::kLateWorkers:
      return " late";
    case BatchPlan::Lost::Why::kNoGroup:
      return " unused";
    case BatchPlan::Lost::Why::kHeld:
      return " held";
  }
  return " ?";
}

// A coordinator and a Slurm of a few fields, and a plan between them.
class BatchPlanTest : public testing::Test {
 protected:
  // Makes the groups wait.
  void Wait(const std::string& job_id, std::vector<uint32_t> ranks) { waiting_[job_id] = std::move(ranks); }
  // A worker of the batch job has joined on the node, or has other values now.
  void Join(const std::string& id, const std::string& job_id, uint32_t slots, uint32_t used = 0,
            const std::string& node = "n0") {
    v1::SiteWorker& worker = workers_[job_id][absl::StrCat(node, "-", id)];
    worker.set_name(absl::StrCat(node, "-", id));
    worker.set_slots(slots);
    worker.set_slots_used(used);
  }
  // The batch job runs, and all its `slots` are taken: no group of its job waits any more. The plan looks once.
  void RunAll(const std::string& id, uint32_t slots) {
    slurm_[id].state = State::kRuns;
    const std::string job_id = slurm_[id].job_id;
    Join(id, job_id, slots, slots);
    Wait(job_id, {});
    Turn();
  }
  // Lets the plan look once, and obeys it. Returns what it did, as "submit a-1 4", "end 7", "end 7 gently", "lost 7",
  // "gone 7".
  std::vector<std::string> Turn() {
    now_ += kTurn;
    v1::SiteHeartbeatResponse site;
    std::set<std::string> jobs;
    for (const auto& [job_id, ranks] : waiting_) jobs.insert(job_id);
    for (const auto& [job_id, workers] : workers_) jobs.insert(job_id);
    for (const std::string& job_id : jobs) {
      v1::SiteJob& job = *site.add_jobs();
      job.set_job_id(job_id);
      for (const uint32_t ranks : waiting_[job_id]) job.add_waiting_ranks(ranks);
      for (const auto& [id, worker] : workers_[job_id]) *job.add_workers() = worker;
    }
    for (const std::string& job_id : ended_) site.add_ended_jobs(job_id);
    std::vector<BatchJob> queue;
    for (const auto& [id, job] : slurm_) queue.push_back(job);
    std::vector<std::string> did;
    const BatchPlan::Actions actions = plan_->Next(site, queue, now_);
    for (const BatchPlan::Submission& submission : actions.submissions) {
      if (plan_->FailedThisTurn(submission.job_id)) continue;
      did.push_back(absl::StrCat("submit ", submission.job_id, " ", submission.ranks));
      if (!refused_.empty()) {
        plan_->Failed(submission.job_id, refused_, now_);
        continue;
      }
      const std::string id = absl::StrCat(next_id_++);
      slurm_[id] = {id, submission.job_id, submission.ranks, State::kWaits, "Priority"};
      plan_->Submitted(submission, id);
    }
    for (const BatchPlan::End& end : actions.ends) {
      did.push_back(absl::StrCat("end ", end.id, end.gently ? " gently" : ""));
      if (obeys_) Gone(end.id);
    }
    for (const BatchPlan::Lost& lost : actions.lost) {
      did.push_back(absl::StrCat("lost ", lost.job.id, WhyText(lost.why)));
      plan_->Failed(lost.job.job_id, "no workers", now_);
    }
    for (const BatchJob& job : actions.gone) {
      did.push_back(absl::StrCat("gone ", job.id));
      plan_->Tell(job.job_id, absl::StrCat("Slurm job ", job.id, " ended: TIMEOUT"), now_);
    }
    return did;
  }
  void Gone(const std::string& id) {
    auto& workers = workers_[slurm_[id].job_id];
    for (auto it = workers.begin(); it != workers.end();) {
      it = BatchIdOf(it->first) == id ? workers.erase(it) : std::next(it);
    }
    slurm_.erase(id);
  }
  std::string Note(const std::string& job_id) const {
    for (const v1::SiteNote& note : plan_->Notes()) {
      if (note.job_id() == job_id) return note.text();
    }
    return "";
  }

  std::optional<BatchPlan> plan_{BatchPlanOptions{/*ranks_max=*/16}};
  absl::Duration now_ = absl::Hours(1);
  std::map<std::string, std::vector<uint32_t>> waiting_;
  std::map<std::string, std::map<std::string, v1::SiteWorker>> workers_;
  std::vector<std::string> ended_;
  std::map<std::string, BatchJob> slurm_;
  std::string refused_;  // Why Slurm takes no jobs; empty: it takes them.
  bool obeys_ = true;    // Batch jobs that are told to end do so.
  int next_id_ = 1;
};

// Each waiting group gets one batch job, and no second one while Slurm has it. The job's note says what its batch jobs
// do.
TEST_F(BatchPlanTest, EachGroupGetsABatchJob) {
  Wait("a-1", {2, 4});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 4", "submit a-1 2"));
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"), "Slurm jobs 1, 2 wait: Priority");
  slurm_["1"].state = State::kRuns;
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"), "Slurm job 1 starts its workers; Slurm job 2 waits: Priority");
  Join("1", "a-1", 4);
  EXPECT_THAT(Turn(), IsEmpty());
  Join("1", "a-1", 4, 4);
  Wait("a-1", {2});
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"), "Slurm job 2 waits: Priority");
}

// A group that starts again gets the workers that are still there, and a new batch job if there are none.
TEST_F(BatchPlanTest, ABatchJobServesTheNextGroup) {
  Wait("a-1", {2});
  Turn();
  slurm_["1"].state = State::kRuns;
  Join("1", "a-1", 2, 2);
  Wait("a-1", {});
  EXPECT_THAT(Turn(), IsEmpty());
  Join("1", "a-1", 2, 0);
  Wait("a-1", {2});
  EXPECT_THAT(Turn(), IsEmpty());
  Gone("1");  // Its time limit.
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 2", "gone 1"));
}

// Why a batch job ended is told as long as a group waits because of it. A batch job that this site has ended needs no
// explanation.
TEST_F(BatchPlanTest, TheEndOfABatchJobIsTold) {
  Wait("a-1", {2});
  Turn();
  RunAll("1", 2);
  Gone("1");
  EXPECT_THAT(Turn(), ElementsAre("gone 1"));
  // The coordinator gives the silent workers a lease. Only then the group waits.
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"), "Slurm job 1 ended: TIMEOUT");
  Wait("a-1", {2});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 2"));
  now_ += absl::Hours(3);
  Turn();
  EXPECT_EQ(Note("a-1"), "Slurm job 1 ended: TIMEOUT; Slurm job 2 waits: Priority");
  RunAll("2", 2);
  EXPECT_EQ(Note("a-1"), "");
  ended_ = {"a-1"};
  EXPECT_THAT(Turn(), ElementsAre("end 2 gently"));
  EXPECT_THAT(Turn(), IsEmpty());
}

// Workers that run but are not heard are no room for a group that waits.
TEST_F(BatchPlanTest, SilentWorkersAreReplaced) {
  Wait("a-1", {2});
  Turn();
  RunAll("1", 2);
  workers_["a-1"].clear();
  Wait("a-1", {2});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 2"));
  EXPECT_THAT(Turn(), IsEmpty());
}

// The end of a job ends its batch jobs: those that wait at once, and gently those that run.
TEST_F(BatchPlanTest, TheEndOfAJobEndsItsBatchJobs) {
  Wait("a-1", {2, 2});
  Turn();
  slurm_["2"].state = State::kRuns;
  Turn();
  waiting_.clear();
  ended_ = {"a-1"};
  obeys_ = false;
  EXPECT_THAT(Turn(), ElementsAre("end 1", "end 2 gently"));
  EXPECT_THAT(Turn(), IsEmpty());
  now_ += absl::Minutes(1);
  EXPECT_THAT(Turn(), ElementsAre("end 1", "end 2"));
  slurm_["1"].state = State::kEnds;
  now_ += absl::Minutes(1);
  EXPECT_THAT(Turn(), ElementsAre("end 2"));
  slurm_.clear();
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_THAT(plan_->Jobs(), IsEmpty());
  EXPECT_THAT(plan_->Notes(), IsEmpty());
}

// A batch job whose group has found another place is ended, but only while it waits in the queue. Batch jobs that run
// are not ended until the coordinator says that the job has ended. The coordinator may just have started again, and not
// know their workers yet.
TEST_F(BatchPlanTest, OnlyWaitingBatchJobsAreTakenBack) {
  Wait("a-1", {2});
  Wait("b-2", {1});
  Turn();
  RunAll("2", 1);
  waiting_.clear();
  workers_.clear();
  EXPECT_THAT(Turn(), IsEmpty());
  now_ += absl::Minutes(5);
  EXPECT_THAT(Turn(), ElementsAre("end 1"));
  EXPECT_THAT(Turn(), IsEmpty());
}

// The coordinator does not list groups that cannot start for a while, because their number changes or a server is
// silent. Their batch job keeps its place in Slurm's queue, and unneeded_for is counted anew each time.
TEST_F(BatchPlanTest, ABatchJobOutlastsAShortChange) {
  Wait("a-1", {2});
  Turn();
  for (int i = 0; i < 3; ++i) {
    waiting_.clear();
    EXPECT_THAT(Turn(), IsEmpty());
    now_ += absl::Minutes(4);
    EXPECT_THAT(Turn(), IsEmpty());
    Wait("a-1", {2});
    EXPECT_THAT(Turn(), IsEmpty());
  }
}

// If there are more batch jobs than the waiting groups need, the surplus ends at once. Slurm may requeue a batch job,
// for example, after another one was submitted for the same group.
TEST_F(BatchPlanTest, ASurplusBatchJobEndsAtOnce) {
  Wait("a-1", {2, 2});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 2", "submit a-1 2"));
  waiting_.clear();
  Wait("a-1", {2});
  EXPECT_THAT(Turn(), ElementsAre(testing::StartsWith("end ")));
}

// An agent that has started again knows its batch jobs from Slurm's queue.
TEST_F(BatchPlanTest, AnotherAgentGoesOn) {
  Wait("a-1", {2, 4});
  Turn();
  plan_.emplace(BatchPlanOptions{16});
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_THAT(plan_->Jobs(), ElementsAre("a-1"));
}

// If Slurm refuses, it is asked again after pauses that grow, and the text says why.
TEST_F(BatchPlanTest, RefusalsAreTriedAgain) {
  refused_ = "sbatch: invalid account";
  Wait("a-1", {1});
  std::vector<absl::Duration> at;
  for (int i = 0; i < 5000 && at.size() < 12; ++i) {
    if (!Turn().empty()) at.push_back(now_);
  }
  ASSERT_EQ(at.size(), 12u);
  EXPECT_EQ(at[1] - at[0], absl::Seconds(10));
  EXPECT_EQ(at[2] - at[1], absl::Seconds(20));
  EXPECT_EQ(at[11] - at[10], absl::Minutes(10));
  EXPECT_EQ(Note("a-1"), "sbatch: invalid account; it is tried again");
  refused_.clear();
  now_ += absl::Minutes(10);
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 1"));
  RunAll("1", 1);
  EXPECT_EQ(Note("a-1"), "");
}

// Under a time limit of two minutes the groups leave at once. Batch jobs then follow one another after pauses that
// grow, until a group has run for a minute.
TEST_F(BatchPlanTest, BriefBatchJobsAreAFailure) {
  std::vector<absl::Duration> pauses;
  Wait("a-1", {1});
  Turn();
  for (int i = 1; i <= 4; ++i) {
    RunAll(absl::StrCat(i), 1);
    Gone(absl::StrCat(i));
    Wait("a-1", {1});
    const absl::Duration gone = now_;
    std::vector<std::string> did = Turn();
    EXPECT_EQ(did.back(), absl::StrCat("gone ", i));
    if (i == 3) {
      EXPECT_THAT(Note("a-1"), testing::HasSubstr("ended within a minute of their first group"));
    }
    while (did.empty() || did[0] != "submit a-1 1") {
      ASSERT_LT(now_ - gone, absl::Hours(1));
      did = Turn();
    }
    pauses.push_back(now_ - gone - kTurn);
  }
  EXPECT_THAT(pauses, ElementsAre(absl::ZeroDuration(), absl::Seconds(20), absl::Seconds(40), absl::Seconds(80)));
  RunAll("5", 1);
  now_ += absl::Minutes(1);
  Turn();
  Gone("5");
  Wait("a-1", {1});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 1", "gone 5"));
}

// If no group can be placed on the workers that came, the next batch job is submitted only after a pause. Otherwise the
// site would use nodes for nothing.
TEST_F(BatchPlanTest, UnusedWorkersAreAFailure) {
  Wait("a-1", {4});
  Turn();
  for (const char* id : {"1", "2"}) {
    slurm_[id].state = State::kRuns;
    Join(id, "a-1", 2);
    Turn();
    Gone(id);
    EXPECT_THAT(Turn(), ElementsAre(absl::StrCat("lost ", id, " unused")));
    EXPECT_THAT(Turn(), IsEmpty());
    now_ += absl::Seconds(20);
    Turn();
  }
  // Once the group runs elsewhere, an unused batch job is no failure.
  slurm_["3"].state = State::kRuns;
  Join("3", "a-1", 2);
  Wait("a-1", {});
  Turn();
  Gone("3");
  EXPECT_THAT(Turn(), IsEmpty());
}

// A batch job that ends before its workers came is a failure; so is one whose workers do not come.
TEST_F(BatchPlanTest, WorkersThatDoNotComeAreAFailure) {
  Wait("a-1", {1});
  Turn();
  slurm_.clear();
  EXPECT_THAT(Turn(), ElementsAre("lost 1"));
  EXPECT_EQ(Note("a-1"), "no workers; it is tried again");
  now_ += absl::Seconds(10);
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 1"));
  slurm_["2"].state = State::kRuns;
  obeys_ = false;
  Turn();
  now_ += absl::Minutes(3);
  EXPECT_THAT(Turn(), ElementsAre("end 2 gently", "lost 2 late"));
  EXPECT_THAT(Turn(), IsEmpty()) << "no new one before the pause is over";
  slurm_.clear();
  EXPECT_THAT(Turn(), IsEmpty()) << "it was given up already";
}

// The pauses after failures last while another group of the job runs.
TEST_F(BatchPlanTest, PausesLastWhileAGroupRuns) {
  Wait("a-1", {1});
  Turn();
  slurm_["1"].state = State::kRuns;
  Join("1", "a-1", 1, 1);
  refused_ = "sbatch: no more";
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 1"));
  EXPECT_THAT(Turn(), IsEmpty());
  now_ += absl::Seconds(10);
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 1"));
  now_ += absl::Seconds(10);
  EXPECT_THAT(Turn(), IsEmpty()) << "the second pause is 20 s";
  EXPECT_EQ(Note("a-1"), "sbatch: no more; it is tried again");
  Wait("a-1", {});
  Turn();
  EXPECT_EQ(Note("a-1"), "") << "the group has found another place";
}

// However many groups wait, a turn in which Slurm fails costs one short pause.
TEST_F(BatchPlanTest, ATurnIsOneFailure) {
  refused_ = "sbatch: try later";
  Wait("a-1", {1, 1, 1, 1});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 1"));
  now_ += absl::Seconds(10);
  refused_.clear();
  EXPECT_EQ(Turn().size(), 4u);
  slurm_.clear();
  EXPECT_EQ(Turn().size(), 4u) << "all are lost at once";
  now_ += absl::Seconds(20);
  EXPECT_EQ(Turn().size(), 4u);
}

// The workers of a batch job on several nodes come one after the other. From its submission on, the batch job counts as
// room for its group.
TEST_F(BatchPlanTest, WorkersOfSeveralNodesAreAwaited) {
  Wait("a-1", {4});
  Turn();
  slurm_["1"].state = State::kRuns;
  Turn();
  Join("1", "a-1", 2, 0, "n0");
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"), "Slurm job 1 starts its workers");
  Wait("a-1", {4, 2});
  Join("1", "a-1", 2, 1, "n0");
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 4")) << "a group on one slot leaves 3 of 4";
  Wait("a-1", {});
  Join("1", "a-1", 2, 2, "n0");
  Join("1", "a-1", 2, 2, "n1");
  Turn();
  now_ += absl::Minutes(5);
  EXPECT_THAT(Turn(), ElementsAre("end 2"));
  // Once all workers of a batch job have come, a worker that is gone does not come back. So its slots no longer count
  // as room.
  workers_["a-1"].erase("n1-1");
  Join("1", "a-1", 2, 0, "n0");
  Wait("a-1", {4});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 4"));
}

// A batch job that keeps lacking workers is given up, but not while a group runs there.
TEST_F(BatchPlanTest, MissingWorkersAreAFailure) {
  Wait("a-1", {4, 2});
  Turn();
  for (const char* id : {"1", "2"}) slurm_[id].state = State::kRuns;
  Join("1", "a-1", 2);
  Join("2", "a-1", 1, 1);
  Turn();
  now_ += absl::Minutes(3);
  EXPECT_THAT(Turn(), ElementsAre("end 1 gently", "lost 1 late"));
}

// A batch job that Slurm holds back would never start, so it is ended, and another one is tried later.
TEST_F(BatchPlanTest, HeldBatchJobsAreAFailure) {
  Wait("a-1", {2});
  Turn();
  slurm_["1"].state = State::kHeld;
  obeys_ = false;
  EXPECT_THAT(Turn(), ElementsAre("end 1", "lost 1 held"));
  EXPECT_THAT(Turn(), IsEmpty());
  now_ += absl::Seconds(10);
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 2"));
}

// One turn ends only so many batch jobs; the next turns end the others.
TEST_F(BatchPlanTest, EndsHaveALimit) {
  plan_.emplace(BatchPlanOptions{});
  Wait("a-1", std::vector<uint32_t>(250, 1));
  EXPECT_EQ(Turn().size(), 250u);
  waiting_.clear();
  EXPECT_THAT(Turn(), IsEmpty());
  now_ += absl::Minutes(5);
  EXPECT_EQ(Turn().size(), 200u);
  EXPECT_EQ(Turn().size(), 50u);
  EXPECT_THAT(Turn(), IsEmpty());
}

// If more ranks wait than the site may have in Slurm, no batch job is submitted for the others, and the job's text says
// so.
TEST_F(BatchPlanTest, TheSiteHasALimit) {
  Wait("a-1", {10, 10});
  Wait("b-2", {6});
  EXPECT_THAT(Turn(), ElementsAre("submit a-1 10", "submit b-2 6"));
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"),
            "this site has 16 ranks in Slurm, and may have 16 (--slurm-ranks); Slurm job 1 waits: Priority");
}

TEST_F(BatchPlanTest, AGroupMayBeLargerThanTheLimit) {
  Wait("a-1", {17});
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"), "a group of 17 ranks can never start here: the site may have 16 in Slurm (--slurm-ranks)");
}

// A batch job that Slurm requeues keeps its number, and starts other workers.
TEST_F(BatchPlanTest, ARequeuedBatchJobServesAgain) {
  Wait("a-1", {2});
  Turn();
  RunAll("1", 2);
  slurm_["1"].state = State::kWaits;
  Wait("a-1", {2});
  EXPECT_THAT(Turn(), IsEmpty()) << "the coordinator still knows the workers of the first start";
  workers_.clear();
  EXPECT_THAT(Turn(), IsEmpty());
  EXPECT_EQ(Note("a-1"), "Slurm requeued Slurm job 1; Slurm job 1 waits: Priority");
}

TEST_F(BatchPlanTest, AWorkersNameHasTheId) {
  EXPECT_EQ(BatchIdOf("n17-4211"), "4211");
  EXPECT_EQ(BatchIdOf("rack-1-n17-4211"), "4211");
  for (const char* other : {"", "4211", "n17", "n17-", "n17-4211x"}) EXPECT_EQ(BatchIdOf(other), "") << other;
}

}  // namespace
}  // namespace hooke
