// Jobs whose groups are not alike: each kind of groups has its size and its site.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using CoordinatorKindsTest = CoordinatorFixture;

// A group of four ranks at hpc, and two groups of one rank at cloud.
v1::SubmitRequest MixedSubmission() {
  v1::SubmitRequest request = ExampleSubmission("s1", {});
  v1::GroupsSpec& groups = *request.mutable_job()->mutable_groups();
  groups.Clear();
  v1::GroupKind& hpc = *groups.add_kinds();
  hpc.set_ranks(4);
  hpc.set_site("hpc");
  v1::GroupKind& cloud = *groups.add_kinds();
  cloud.set_count(2);
  cloud.set_site("cloud");
  return request;
}

// The job begins with the groups that have room. Each group gets the ranks of its kind, also when it starts again.
TEST_F(CoordinatorKindsTest, GroupsStartAtTheirSites) {
  Heartbeat("b:1");
  FakeWorker hpc("hpc", 4, "hpc"), cloud("cloud", 1, "cloud"), more("more", 4, "cloud");
  ASSERT_TRUE(hpc.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(cloud.Connect(*coordinator_, now_).ok());
  const absl::StatusOr<std::string> id = coordinator_->Submit(MixedSubmission(), now_);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_THAT(Log(*id), HasSubstr("1 group x 4 ranks at hpc, 2 groups x 1 rank at cloud"));
  hpc.Receive(now_);
  cloud.Receive(now_);
  const GroupKey large = {*id, 0, 1}, small = {*id, 1, 1}, late = {*id, 2, 1};
  ASSERT_THAT(hpc.started(), ElementsAre(large));
  EXPECT_EQ(hpc.running().at(large).start.ranks(), 4u);
  ASSERT_THAT(cloud.started(), ElementsAre(small));
  EXPECT_EQ(cloud.running().at(small).start.ranks(), 1u);
  EXPECT_EQ(cloud.running().at(small).start.group().job().groups().count(), 3u);
  EXPECT_THAT(Status(*id).groups(2).reason(), HasSubstr("cloud"));

  ASSERT_TRUE(more.Connect(*coordinator_, now_).ok());
  more.Receive(now_);
  EXPECT_THAT(more.started(), ElementsAre(late));

  hpc.Progress(large, 5, now_);
  hpc.End(large, absl::UnavailableError("lost rank 2"), now_);
  Pass(absl::Minutes(1), {&hpc, &cloud, &more});
  hpc.Receive(now_);
  const GroupKey again = {*id, 0, 2};
  ASSERT_EQ(hpc.running().count(again), 1u);
  EXPECT_EQ(hpc.running().at(again).start.ranks(), 4u);
}

// The center is evaluated with the ranks of the smallest kind at its site. If that site is gone, another one of the job
// takes the evaluation, and if none is left, the job says so.
TEST_F(CoordinatorKindsTest, AnotherSiteEvaluates) {
  Heartbeat("b:1");
  FakeWorker hpc("hpc", 4, "hpc"), cloud("cloud", 2, "cloud"), other("other", 8, "other");
  for (FakeWorker* worker : {&hpc, &cloud, &other}) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  const std::string id = *coordinator_->Submit(MixedSubmission(), now_);
  Pass(absl::Seconds(1), {&hpc, &cloud, &other});
  for (const uint32_t group : {1, 2}) cloud.End({id, group, 1}, absl::OkStatus(), now_);
  Pass(absl::Seconds(1), {&hpc, &cloud, &other});
  cloud.Disconnect(now_);
  Pass(absl::Minutes(1), {&hpc, &other});
  hpc.End({id, 0, 1}, absl::OkStatus(), now_);
  hpc.Disconnect(now_);
  Pass(absl::Minutes(5), {&other});
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_EVALUATING);
  EXPECT_THAT(Status(id).reason(), StartsWith("the evaluation waits: no worker of site cloud"));
  ASSERT_TRUE(hpc.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(2), {&hpc, &other});
  ASSERT_EQ(hpc.running().size(), 1u);
  const GroupKey evaluation = hpc.running().begin()->first;
  EXPECT_EQ(evaluation.group, 3u);
  EXPECT_EQ(hpc.running().at(evaluation).start.ranks(), 1u);
  hpc.Evaluated(evaluation, 0.5, now_);
  hpc.End(evaluation, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id).state(), v1::JOB_STATE_SUCCEEDED);
}

// A site that gets workers from a batch system is asked for them if the preferred site is gone.
TEST_F(CoordinatorKindsTest, ABatchSystemMayEvaluate) {
  Heartbeat("b:1");
  FakeWorker hpc("hpc", 4, "hpc"), cloud("cloud", 2, "cloud");
  for (FakeWorker* worker : {&hpc, &cloud}) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  const std::string id = *coordinator_->Submit(MixedSubmission(), now_);
  Pass(absl::Seconds(1), {&hpc, &cloud});
  for (const uint32_t group : {1, 2}) cloud.End({id, group, 1}, absl::OkStatus(), now_);
  hpc.End({id, 0, 1}, absl::OkStatus(), now_);
  cloud.Disconnect(now_);
  hpc.Disconnect(now_);
  Pass(absl::Minutes(1), {});
  v1::SiteHeartbeatRequest request;
  request.set_site("hpc");
  request.set_instance("i1");
  ASSERT_TRUE(coordinator_->SiteHeartbeat(request, now_).ok());
  const absl::StatusOr<v1::SiteHeartbeatResponse> answer = coordinator_->SiteHeartbeat(request, now_);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->jobs_size(), 1);
  EXPECT_THAT(answer->jobs(0).waiting_ranks(), ElementsAre(1));
  EXPECT_EQ(answer->jobs(0).job_id(), id);
}

// A group that no site can ever hold makes the job impossible, even if the others fit.
TEST_F(CoordinatorKindsTest, EachKindMustFit) {
  Heartbeat("b:1");
  FakeWorker hpc("hpc", 3, "hpc"), cloud("cloud", 8, "cloud");
  ASSERT_TRUE(hpc.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(cloud.Connect(*coordinator_, now_).ok());
  const absl::Status status = coordinator_->Submit(MixedSubmission(), now_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("groups: kind 1: 4 ranks do not fit: the largest worker, hpc at site hpc, has 3"));
}

}  // namespace
}  // namespace hooke
