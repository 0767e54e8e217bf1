// Tests the checks of a cluster with values made by hand.
#include "client/doctor/cluster_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

v1::NodeStatus Node(v1::NodeStatus::Kind kind, const std::string& name) {
  v1::NodeStatus node;
  node.set_kind(kind);
  node.set_name(name);
  node.set_version("1.2.3");
  node.set_alive(true);
  node.set_last_heard_unix_ms(absl::ToUnixMillis(kNow) - 500);
  if (kind == v1::NodeStatus::WORKER) node.set_slots(4);
  return node;
}

// A cluster on which all is well: a server and a worker.
ClusterValues Healthy() {
  ClusterValues cluster;
  cluster.own_version = "1.2.3";
  cluster.address = "head:7411";
  cluster.source = "--coordinator";
  cluster.round_trip = absl::Milliseconds(1);
  cluster.asked = kNow;
  cluster.told = kNow + absl::Milliseconds(10);
  *cluster.nodes.add_nodes() = Node(v1::NodeStatus::SERVER, "head:7411");
  *cluster.nodes.add_nodes() = Node(v1::NodeStatus::WORKER, "w1");
  cluster.nodes.mutable_nodes(1)->set_slots_used(3);
  return cluster;
}

Finding Named(const Findings& findings, const std::string& check) {
  for (const Finding& one : findings) {
    if (one.check == check) return one;
  }
  ADD_FAILURE() << "no finding about " << check;
  return {};
}

void Expect(const Findings& findings, const std::string& check, Level level, const std::string& found,
            const std::string& advice = "") {
  const Finding finding = Named(findings, check);
  EXPECT_EQ(finding.level, level) << finding.found;
  EXPECT_THAT(finding.found, HasSubstr(found));
  EXPECT_EQ(finding.advice.empty(), advice.empty()) << finding.found;
  if (!finding.advice.empty()) {
    EXPECT_THAT(finding.advice[0], HasSubstr(advice));
  }
}

TEST(ClusterChecksTest, AllIsWell) {
  const Findings findings = CheckCluster(Healthy());
  EXPECT_EQ(findings.size(), 7u);
  for (const Finding& one : findings) EXPECT_EQ(one.level, Level::kOk) << one.check << ": " << one.found;
  Expect(findings, "coordinator", Level::kOk, "head:7411 (--coordinator) answers in 1ms");
  Expect(findings, "workers", Level::kOk, "1 worker is alive, 3 of 4 slots are in use");
}

// If no cluster runs, that is a fault only if somebody has given the coordinator's address.
TEST(ClusterChecksTest, NoCoordinator) {
  ClusterValues cluster = Healthy();
  cluster.connected = absl::UnavailableError("cannot reach the coordinator at head:7411: Connection refused");
  Expect(CheckCluster(cluster), "coordinator", Level::kFault, "Connection refused", "ss -ltnp | grep :7411");
  EXPECT_EQ(CheckCluster(cluster).size(), 1u);
  cluster.by_default = true;
  Expect(CheckCluster(cluster), "cluster", Level::kOk, "none runs at head:7411", "`hooke up`");
  cluster.connected = absl::UnavailableError("cannot reach the coordinator at head:7411: no answer within 3s");
  Expect(CheckCluster(cluster), "coordinator", Level::kFault, "no answer within 3s", "is it alive?");
  cluster.connected = absl::OkStatus();
  cluster.answered = absl::DeadlineExceededError("the coordinator has not answered within 3s");
  Expect(CheckCluster(cluster), "coordinator", Level::kFault, "within 3s", "is it alive?");
}

TEST(ClusterChecksTest, Token) {
  ClusterValues cluster = Healthy();
  cluster.token_file = "/t";
  Expect(CheckCluster(cluster), "token", Level::kOk, "/t is readable and private");
  cluster.answered = absl::UnauthenticatedError("this is not the token of this cluster");
  Expect(CheckCluster(cluster), "token", Level::kFault, "not the token", "copy the token file");
  Expect(CheckCluster(cluster), "coordinator", Level::kOk, "refuses this token");
  cluster.token = absl::PermissionDeniedError("the token file /t is open to others");
  Expect(CheckCluster(cluster), "token", Level::kFault, "open to others", "ls -l /t");
  EXPECT_EQ(CheckCluster(cluster).size(), 1u);
}

TEST(ClusterChecksTest, SlowCoordinator) {
  ClusterValues cluster = Healthy();
  cluster.round_trip = absl::Milliseconds(400);
  Expect(CheckCluster(cluster), "coordinator", Level::kWarning, "answers in 400ms", "`ping head`");
}

TEST(ClusterChecksTest, Nodes) {
  ClusterValues cluster = Healthy();
  cluster.nodes.mutable_nodes(1)->set_version("1.2.2");
  Expect(CheckCluster(cluster), "versions", Level::kFault, "hooke is 1.2.3, but 1.2.2 on worker w1", "same version");
  cluster.nodes.mutable_nodes(1)->set_version("");  // Not heard from yet.
  Expect(CheckCluster(cluster), "versions", Level::kOk, "all have 1.2.3");
  cluster.nodes.mutable_nodes(1)->set_alive(false);
  Expect(CheckCluster(cluster), "workers", Level::kWarning, "silent: w1", "hooke-worker");
  cluster.nodes.mutable_nodes(0)->set_alive(false);
  Expect(CheckCluster(cluster), "servers", Level::kFault, "silent: head:7411", "start it again");
  cluster.nodes.mutable_nodes(0)->set_alive(true);
  cluster.nodes.mutable_nodes(0)->set_problem("advertises b:1, which the coordinator cannot reach");
  Expect(CheckCluster(cluster), "servers", Level::kFault, "unusable: head:7411 advertises b:1", "hooke nodes");
  cluster.nodes.mutable_nodes()->RemoveLast();
  Expect(CheckCluster(cluster), "workers", Level::kFault, "there is none", "hooke-worker --coordinator head:7411");
  for (int i = 0; i < 9; ++i) *cluster.nodes.add_nodes() = Node(v1::NodeStatus::WORKER, absl::StrCat("old", i));
  for (int i = 1; i < 10; ++i) cluster.nodes.mutable_nodes(i)->set_alive(false);
  Expect(CheckCluster(cluster), "workers", Level::kWarning, "silent: old0, old1, old2, old3, old4 and 4 more", "ps");
}

TEST(ClusterChecksTest, Jobs) {
  ClusterValues cluster = Healthy();
  v1::JobStatus* job = cluster.jobs.add_jobs();
  job->set_job_id("a-2");
  job->set_state(v1::JOB_STATE_QUEUED);
  job->set_reason("needs 8 slots at one site, but there are 4");
  job->set_now_unix_ms(absl::ToUnixMillis(kNow));
  job->set_submitted_unix_ms(job->now_unix_ms() - 30'000);
  cluster.jobs.add_jobs()->set_state(v1::JOB_STATE_RUNNING);
  Expect(CheckCluster(cluster), "jobs", Level::kOk, "1 running, 1 waiting; a-2 waits for 0:30: needs 8 slots");
  *cluster.jobs.add_jobs() = *job;
  cluster.jobs.mutable_jobs(2)->set_job_id("a-1");
  cluster.jobs.mutable_jobs(2)->set_submitted_unix_ms(job->now_unix_ms() - 300'000);
  Expect(CheckCluster(cluster), "jobs", Level::kWarning, "1 running, 2 waiting; a-1 waits for 5:00", "hooke jobs a-1");
}

TEST(ClusterChecksTest, Clock) {
  const struct {
    // How many milliseconds before kNow the newest heartbeat and the newest status were made, by the coordinator's
    // clock. status_ms 0: there is no job.
    int64_t heartbeat_ms, status_ms;
    const char* found;
    Level level;
  } cases[] = {
      {500, 0, "fits", Level::kOk},
      {3500, 0, "fits", Level::kOk},
      {-500, -5, "fits", Level::kOk},
      {60'000, 0, "at least 58 s behind", Level::kWarning},
      {-60'000, 0, "at least 60 s ahead of", Level::kWarning},
      {61'000, 60'000, "at least 60 s behind", Level::kWarning},
  };
  for (const auto& one : cases) {
    ClusterValues cluster = Healthy();
    for (v1::NodeStatus& node : *cluster.nodes.mutable_nodes())
      node.set_last_heard_unix_ms(absl::ToUnixMillis(kNow) - one.heartbeat_ms);
    if (one.status_ms != 0) cluster.jobs.add_jobs()->set_now_unix_ms(absl::ToUnixMillis(kNow) - one.status_ms);
    const Finding finding = Named(CheckCluster(cluster), "cluster clock");
    EXPECT_EQ(finding.level, one.level) << finding.found;
    EXPECT_THAT(finding.found, HasSubstr(one.found)) << one.heartbeat_ms;
  }
  ClusterValues quiet = Healthy();
  for (v1::NodeStatus& node : *quiet.nodes.mutable_nodes()) node.set_alive(false);
  EXPECT_FALSE(CoordinatorClock(quiet).has_value());
}

}  // namespace
}  // namespace hooke
