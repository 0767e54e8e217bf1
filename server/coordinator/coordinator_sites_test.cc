// Sites that get their workers from a batch system: what their agent learns, and what people learn from it.

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
using testing::IsEmpty;
using testing::Not;

class CoordinatorSitesTest : public CoordinatorFixture {
 protected:
  absl::StatusOr<v1::SiteHeartbeatResponse> Ask(const v1::SiteHeartbeatRequest& request) {
    return coordinator_->SiteHeartbeat(request, now_);
  }
  static v1::SiteHeartbeatRequest Request(const std::string& instance = "i1") {
    v1::SiteHeartbeatRequest request;
    request.set_site("hpc");
    request.set_instance(instance);
    return request;
  }
  // Submits a job with groups of these numbers of ranks, the first at hpc and the second at cloud.
  std::string SubmitMixed(uint32_t at_hpc, uint32_t at_cloud) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("s", ++submissions_), {});
    v1::GroupsSpec& groups = *request.mutable_job()->mutable_groups();
    groups.Clear();
    for (const auto& [site, ranks] : {std::pair("hpc", at_hpc), std::pair("cloud", at_cloud)}) {
      v1::GroupKind& kind = *groups.add_kinds();
      kind.set_site(site);
      kind.set_ranks(ranks);
    }
    (*request.mutable_job()->mutable_slurm())["hpc"].set_partition("long");
    const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : "";
  }
};

// The agent learns which groups wait for its site, and what their job asks of Slurm. It does not learn of groups at
// other sites. The agent's notes are appended to the job's reason, and written to the job's log.
TEST_F(CoordinatorSitesTest, TheAgentLearnsWhatWaits) {
  Heartbeat("b:1");
  ASSERT_TRUE(Ask(Request()).ok());
  const std::string id = SubmitMixed(4, 1);
  absl::StatusOr<v1::SiteHeartbeatResponse> answer = Ask(Request());
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->jobs_size(), 1);
  EXPECT_EQ(answer->jobs(0).job_id(), id);
  EXPECT_THAT(answer->jobs(0).waiting_ranks(), ElementsAre(4));
  EXPECT_EQ(answer->jobs(0).slurm().partition(), "long");
  EXPECT_THAT(answer->jobs(0).workers(), IsEmpty());

  v1::SiteHeartbeatRequest request = Request();
  v1::SiteNote& note = *request.add_notes();
  note.set_job_id(id);
  note.set_text("Slurm job 7 waits: \x1b[31mPriority");
  request.add_notes()->set_job_id("unknown-9");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Ask(request).ok());
    Pass(absl::Seconds(1), {});
  }
  const std::string shown = "Slurm job 7 waits: \\x1b[31mPriority";
  EXPECT_THAT(Status(id).groups(0).reason(), testing::EndsWith("; " + shown));
  EXPECT_THAT(Status(id).groups(1).reason(), Not(HasSubstr("Slurm")));
  const std::string log = Log(id);
  const size_t first = log.find("site hpc: " + shown);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("site hpc:", first + 1), std::string::npos) << "once, because it did not change";

  // When the agent was not heard for a while, its notes are no longer shown.
  Pass(absl::Minutes(2), {});
  EXPECT_THAT(Status(id).groups(0).reason(), HasSubstr("the process that gets workers for hpc was last heard 2m ago: "
                                                       "start hooke-worker --slurm --site hpc again"));
}

// The agent does not learn of groups that wait because of their owner's quota. Nodes for them would stand idle.
TEST_F(CoordinatorSitesTest, NoNodesBeyondAQuota) {
  settings_.cluster.owner_slots = *ParseOwnerSlots("5");
  Restart();
  Heartbeat("b:1");
  ASSERT_TRUE(Ask(Request()).ok());
  const std::string first = SubmitMixed(3, 1);
  const std::string second = SubmitMixed(3, 1);
  SubmitMixed(1, 1);  // It waits behind the second one, which is held back.
  const absl::StatusOr<v1::SiteHeartbeatResponse> answer = Ask(Request());
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->jobs_size(), 1);
  EXPECT_EQ(answer->jobs(0).job_id(), first);
  EXPECT_THAT(answer->jobs(0).waiting_ranks(), ElementsAre(3));
}

// A job that asks something of Slurm says so if no agent of its site has come.
TEST_F(CoordinatorSitesTest, AMissingAgentIsNamed) {
  Heartbeat("b:1");
  const std::string id = SubmitMixed(4, 1);
  Pass(absl::Seconds(2), {});
  EXPECT_THAT(Status(id).groups(0).reason(), testing::EndsWith("; no hooke-worker --slurm --site hpc has come yet"));
  EXPECT_THAT(Status(id).groups(1).reason(), Not(HasSubstr("slurm")));
}

// A worker of one job gets its groups and no others. The agent sees its slots, and learns which jobs have ended.
TEST_F(CoordinatorSitesTest, AWorkerOfOneJob) {
  Heartbeat("b:1");
  ASSERT_TRUE(Ask(Request()).ok());
  const std::string other = SubmitMixed(2, 1);
  const std::string id = SubmitMixed(2, 1);
  FakeWorker worker("n0-7", 3, "hpc");
  worker.SetOnlyJob(id);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  worker.Receive(now_);
  ASSERT_THAT(worker.started(), ElementsAre(GroupKey{id, 0, 1}));
  EXPECT_EQ(Status(other).groups(0).reason(), "needs 2 slots at hpc; the worker there is only for other jobs");
  EXPECT_EQ(coordinator_->Nodes(now_).back().only_job(), id);

  v1::SiteHeartbeatRequest request = Request();
  for (const std::string& job_id : {id, other, std::string("gone-9")}) request.add_jobs(job_id);
  absl::StatusOr<v1::SiteHeartbeatResponse> answer = Ask(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->jobs_size(), 2);
  EXPECT_THAT(answer->jobs(0).waiting_ranks(), IsEmpty()) << "the job that runs comes first";
  ASSERT_EQ(answer->jobs(0).workers_size(), 1);
  EXPECT_EQ(answer->jobs(0).workers(0).name(), "n0-7");
  EXPECT_EQ(answer->jobs(0).workers(0).slots(), 3u);
  EXPECT_EQ(answer->jobs(0).workers(0).slots_used(), 2u);
  EXPECT_THAT(answer->jobs(1).waiting_ranks(), ElementsAre(2));
  EXPECT_THAT(answer->ended_jobs(), ElementsAre("gone-9"));

  // A batch job's worker never comes back under its name. But it may only be cut off, so it is listed for two minutes.
  worker.Disconnect(now_);
  Pass(absl::Minutes(1), {});
  EXPECT_EQ(coordinator_->Nodes(now_).back().name(), "n0-7");
  Pass(absl::Minutes(1), {});
  EXPECT_EQ(coordinator_->Nodes(now_).back().kind(), v1::NodeStatus::SERVER);

  ASSERT_TRUE(coordinator_->Cancel(id, now_).ok());
  EXPECT_THAT(Ask(request)->ended_jobs(), ElementsAre(id, "gone-9"));
}

// A group that waits for servers cannot use nodes, so the agent does not learn of it before there is a server.
TEST_F(CoordinatorSitesTest, GroupsThatWaitForServersNeedNoNodes) {
  Pass(absl::Minutes(1), {}, /*server_lives=*/false);
  ASSERT_TRUE(Ask(Request()).ok());
  SubmitMixed(4, 1);
  EXPECT_THAT(Ask(Request())->jobs(), IsEmpty());
  Heartbeat("b:1");
  const absl::StatusOr<v1::SiteHeartbeatResponse> answer = Ask(Request());
  ASSERT_EQ(answer->jobs_size(), 1);
  EXPECT_THAT(answer->jobs(0).waiting_ranks(), ElementsAre(4));
}

// A drained worker gets no group. So the agent sees no free slots there, and asks for other nodes.
TEST_F(CoordinatorSitesTest, ADrainedWorkerIsFull) {
  Heartbeat("b:1");
  ASSERT_TRUE(Ask(Request()).ok());
  const std::string id = SubmitMixed(4, 1);
  FakeWorker worker("n0-7", 3, "hpc");
  worker.SetOnlyJob(id);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  EXPECT_EQ(Ask(Request())->jobs(0).workers(0).slots_used(), 0u);
  ASSERT_TRUE(coordinator_->Drain("n0-7", v1::DRAIN_FINISH, now_).ok());
  EXPECT_EQ(Ask(Request())->jobs(0).workers(0).slots_used(), 3u);
  ASSERT_TRUE(coordinator_->Drain("n0-7", v1::DRAIN_NONE, now_).ok());
  EXPECT_EQ(Ask(Request())->jobs(0).workers(0).slots_used(), 0u);
}

// A batch system gives workers as large as they are needed, so those that are there now are no limit for a job.
TEST_F(CoordinatorSitesTest, ALargerJobIsNotRefused) {
  Heartbeat("b:1");
  FakeWorker worker("n0-7", 1, "hpc");
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  v1::SubmitRequest request = ExampleSubmission("large", {});
  request.mutable_job()->mutable_groups()->set_ranks(4);
  request.mutable_job()->mutable_groups()->set_site("hpc");
  EXPECT_EQ(coordinator_->Submit(request, now_).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Ask(Request()).ok());
  EXPECT_TRUE(coordinator_->Submit(request, now_).ok());
}

// A second agent for a site is refused, because two would submit every batch job twice. It may take over when the first
// one is gone.
TEST_F(CoordinatorSitesTest, OneAgentForASite) {
  ASSERT_TRUE(Ask(Request("i1")).ok());
  Pass(absl::Seconds(30), {});
  const absl::Status refused = Ask(Request("i2")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("for site hpc and was heard 30s ago: end it first"));
  ASSERT_TRUE(Ask(Request("i1")).ok());
  Pass(absl::Seconds(91), {});
  EXPECT_TRUE(Ask(Request("i2")).ok());
  EXPECT_EQ(Ask(Request("i1")).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(CoordinatorSitesTest, WrongRequestsAreRefused) {
  v1::SiteHeartbeatRequest site = Request();
  site.set_site("a b");
  v1::SiteHeartbeatRequest instance = Request("");
  v1::SiteHeartbeatRequest notes = Request();
  for (int i = 0; i < 4097; ++i) notes.add_notes();
  v1::SiteHeartbeatRequest jobs = Request();
  for (int i = 0; i < 4097; ++i) jobs.add_jobs("a-1");
  for (const v1::SiteHeartbeatRequest& wrong : {site, instance, notes, jobs}) {
    EXPECT_EQ(Ask(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong.site();
  }
  FakeWorker worker("w", 1);
  worker.SetOnlyJob(std::string(129, 'j'));
  EXPECT_EQ(worker.Connect(*coordinator_, now_).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hooke
