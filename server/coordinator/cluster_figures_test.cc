#include "server/cluster/cluster_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"
#include "server/records/record_store.h"

namespace hooke {
namespace {

class ClusterFiguresTest : public CoordinatorFixture {
 protected:
  ClusterFigures Figures(const FigureLimits& limits = {}) { return coordinator_->Figures(limits, now_).cluster; }

  // Returns the ids of the listed jobs.
  std::vector<std::string> Listed(const FigureLimits& limits = {}) {
    std::vector<std::string> ids;
    for (const JobFigures& job : Figures(limits).listed_jobs) ids.push_back(job.job_id);
    return ids;
  }
};

// A running job with one group that trains and one that waits, and a queued job behind it: the counts by state, the
// slots, and the group's step.
TEST_F(ClusterFiguresTest, CountsWhatRunsAndWaits) {
  const std::string first = Submit({2, 2});
  const std::string second = Submit({1, 2});
  FakeWorker worker("w1", 3);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  worker.Receive(now_);
  worker.Progress({first, 0, 1}, 5, now_);
  now_ += absl::Seconds(2);
  const ClusterFigures figures = Figures();
  EXPECT_EQ(figures.jobs.size(), 7u);
  EXPECT_EQ(figures.jobs.at(v1::JOB_STATE_RUNNING), 1u);
  EXPECT_EQ(figures.jobs.at(v1::JOB_STATE_QUEUED), 1u);
  EXPECT_EQ(figures.groups.at(v1::GROUP_STATE_RUNNING), 1u);
  EXPECT_EQ(figures.groups.at(v1::GROUP_STATE_WAITING), 2u);
  EXPECT_EQ(figures.workers_alive, 1u);
  EXPECT_EQ(figures.slots_used, 2u);
  EXPECT_EQ(figures.slots_free, 1u);
  ASSERT_EQ(figures.workers.size(), 1u);
  EXPECT_EQ(figures.workers[0].name, "w1");
  EXPECT_EQ(figures.workers[0].unheard, absl::Seconds(2));
  ASSERT_EQ(figures.servers.size(), 1u);
  EXPECT_EQ(figures.servers[0].address, "b:1");
  EXPECT_TRUE(figures.servers[0].usable);
  ASSERT_EQ(figures.listed_jobs.size(), 2u);
  const JobFigures& running = figures.listed_jobs[0];
  EXPECT_EQ(running.job_id, first);
  EXPECT_EQ(running.step, 5u);
  EXPECT_EQ(running.queued, absl::ZeroDuration());
  ASSERT_EQ(running.groups.size(), 2u);
  EXPECT_TRUE(running.groups[0].placed);
  EXPECT_EQ(running.groups[0].progress->step(), 5u);
  EXPECT_FALSE(running.groups[1].placed);
  EXPECT_FALSE(running.groups[1].progress.has_value());
  EXPECT_EQ(figures.listed_jobs[1].job_id, second);
  EXPECT_EQ(figures.listed_jobs[1].queued, absl::Seconds(2));
}

// A group that is started again counts as a restart, and keeps the step of its first start until it reports.
TEST_F(ClusterFiguresTest, CountsRestarts) {
  const std::string id = Submit({1, 2});
  FakeWorker worker("w1", 2);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  worker.Receive(now_);
  worker.Progress({id, 0, 1}, 7, now_);
  worker.End({id, 0, 1}, absl::UnavailableError("a rank died"), now_);
  Pass(absl::Seconds(5), {&worker});
  const JobFigures job = Figures().listed_jobs.at(0);
  EXPECT_EQ(job.restarts, 1u);
  EXPECT_EQ(job.groups.at(0).starts, 2u);
  EXPECT_EQ(job.step, 7u);
}

// A change of the number of groups neither adds to the count of restarts nor lowers it.
TEST_F(ClusterFiguresTest, AChangeOfGroupsIsNoRestart) {
  const std::string id = Submit({1, 1});
  FakeWorker worker("w1", 4);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  const auto restarts = [this] { return Figures().listed_jobs.at(0).restarts; };
  const auto scale = [&](uint32_t groups) {
    v1::ScaleJobRequest request;
    request.set_job_id(id);
    request.set_groups(groups);
    ASSERT_TRUE(coordinator_->Scale(request, now_).ok());
    Pass(absl::Seconds(5), {&worker});
    ASSERT_EQ(worker.running().size(), groups);
  };
  Pass(absl::Seconds(1), {&worker});
  scale(4);
  EXPECT_EQ(restarts(), 0u);
  worker.End(worker.running().begin()->first, absl::UnavailableError("a rank died"), now_);
  Pass(absl::Seconds(5), {&worker});
  EXPECT_EQ(restarts(), 1u);
  scale(1);
  EXPECT_EQ(restarts(), 1u);
  scale(2);
  EXPECT_EQ(restarts(), 1u);
}

// A worker that is not heard any more counts as silent, and its slots as neither used nor free.
TEST_F(ClusterFiguresTest, SeesASilentWorker) {
  FakeWorker worker("w1", 3);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(6), {});
  const ClusterFigures figures = Figures();
  EXPECT_EQ(figures.workers_alive, 0u);
  EXPECT_EQ(figures.workers_silent, 1u);
  EXPECT_EQ(figures.slots_free, 0u);
  EXPECT_FALSE(figures.workers.at(0).alive);
  EXPECT_GE(figures.workers.at(0).unheard, absl::Seconds(6));
}

// Limits leave out queued jobs before running ones, and say how much they left out.
TEST_F(ClusterFiguresTest, IsBounded) {
  const std::string queued = Submit({3, 4});
  const std::string running = Submit({2, 1});
  FakeWorker a("a", 1), b("b", 1);
  ASSERT_TRUE(a.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(b.Connect(*coordinator_, now_).ok());
  FigureLimits limits;
  limits.jobs_max = 1;
  limits.workers_max = 1;
  ClusterFigures figures = Figures(limits);
  ASSERT_EQ(figures.listed_jobs.size(), 1u);
  EXPECT_EQ(figures.listed_jobs[0].job_id, running);
  EXPECT_EQ(figures.jobs_left_out, 1u);
  EXPECT_EQ(figures.groups_left_out, 3u);
  EXPECT_EQ(figures.workers.size(), 1u);
  EXPECT_EQ(figures.workers_left_out, 1u);
  EXPECT_EQ(figures.workers_alive, 2u);
  limits = {};
  limits.groups_max = 4;
  figures = Figures(limits);
  EXPECT_EQ(figures.listed_jobs.at(0).groups.size(), 2u);
  EXPECT_EQ(figures.listed_jobs.at(1).job_id, queued);
  EXPECT_EQ(figures.listed_jobs.at(1).groups.size(), 2u);
  EXPECT_EQ(figures.groups_left_out, 1u);
}

// A job that has ended is listed for five minutes more, and then only counted.
TEST_F(ClusterFiguresTest, EndedJobsVanish) {
  const std::string id = Submit({1, 1});
  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  EXPECT_THAT(Listed(), testing::ElementsAre(id));
  EXPECT_EQ(Figures().groups.at(v1::GROUP_STATE_CANCELLED), 0u);
  Pass(absl::Minutes(5) + absl::Seconds(1), {});
  EXPECT_THAT(Listed(), testing::IsEmpty());
  EXPECT_EQ(Figures().jobs.at(v1::JOB_STATE_CANCELLED), 1u);
}

// A failure of the store is counted, and is over when a later attempt succeeds.
TEST_F(ClusterFiguresTest, TellsOfTheStore) {
  const std::string id = Submit({1, 1});
  EXPECT_EQ(coordinator_->Figures({}, now_).store_failures, 0u);
  store_->FailWith(absl::InternalError("broken disk"));
  EXPECT_FALSE(coordinator_->Cancel(id, now_).ok());
  const CoordinatorFigures broken = coordinator_->Figures({}, now_);
  EXPECT_GE(broken.store_failures, 1u);
  EXPECT_FALSE(broken.store_works);
  store_->FailWith(absl::OkStatus());
  Pass(absl::Seconds(3), {});
  EXPECT_TRUE(coordinator_->Figures({}, now_).store_works);
}

}  // namespace
}  // namespace hooke
