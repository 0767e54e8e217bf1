// Groups that run on several workers, in virtual time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Three nodes of two slots, and a job of one group of four ranks.
class CoordinatorPartsTest : public CoordinatorFixture {
 protected:
  CoordinatorPartsTest() {
    a_.SetAddress("10.0.0.1");
    b_.SetAddress("10.0.0.2");
    c_.SetAddress("10.0.0.3");
  }

  // Submits the job, and lets a and b become ready.
  GroupKey StartOnTwo() {
    EXPECT_TRUE(a_.Connect(*coordinator_, now_).ok());
    EXPECT_TRUE(b_.Connect(*coordinator_, now_).ok());
    id_ = Submit({1, 4});
    a_.Receive(now_);
    b_.Receive(now_);
    a_.Receive(now_);
    return {id_, 0, 1};
  }

  // Does what StartOnTwo does, and then lets the ranks train.
  GroupKey RunOnTwo() {
    GroupKey key = StartOnTwo();
    a_.Progress(key, 5, now_);
    EXPECT_EQ(Status(id_).groups(0).state(), v1::GROUP_STATE_RUNNING);
    return key;
  }

  std::string Reason() { return Status(id_).groups(0).reason(); }
  void ReceiveAll() {
    for (FakeWorker* worker : {&a_, &b_, &c_}) worker->Receive(now_);
  }

  FakeWorker a_{"a", 2}, b_{"b", 2}, c_{"c", 2};
  std::string id_;
};

// All parts are told of one another. mpirun starts on the lead only once all parts are ready. mpirun's wish for its
// daemon on the other node reaches that node's worker. The group ends well when all its parts have ended well.
TEST_F(CoordinatorPartsTest, StartsInTwoPhasesAndEndsWhenAllPartsHave) {
  ASSERT_TRUE(a_.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(b_.Connect(*coordinator_, now_).ok());
  id_ = Submit({1, 4});
  const GroupKey key{id_, 0, 1};
  a_.Receive(now_);
  a_.Receive(now_);
  ASSERT_THAT(a_.started(), ElementsAre(key));
  const v1::StartGroupCommand& start = a_.running().at(key).start;
  EXPECT_EQ(start.ranks(), 4u);
  ASSERT_EQ(start.parts_size(), 2);
  EXPECT_EQ(start.parts(1).ShortDebugString(), "worker: \"b\" first_rank: 2 ranks: 2 address: \"10.0.0.2\"");
  EXPECT_TRUE(a_.running().at(key).launches.empty());
  b_.Receive(now_);
  a_.Receive(now_);
  EXPECT_EQ(b_.running().at(key).start.part(), 1u);
  ASSERT_EQ(a_.running().at(key).launches.size(), 1u);
  EXPECT_TRUE(a_.running().at(key).launches[0].arguments().empty());

  a_.Remote(key, "10.0.0.2", {"-mca", "ess", "env"}, now_);
  b_.Receive(now_);
  ASSERT_EQ(b_.running().at(key).launches.size(), 1u);
  EXPECT_THAT(b_.running().at(key).launches[0].arguments(), ElementsAre("-mca", "ess", "env"));

  a_.Progress(key, 5, now_);
  EXPECT_EQ(Status(id_).groups(0).worker(), "a");
  ASSERT_EQ(Status(id_).groups(0).parts_size(), 2);
  EXPECT_EQ(Status(id_).groups(0).parts(1).ShortDebugString(), "worker: \"b\" first_rank: 2 ranks: 2");
  for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) {
    const bool worker = node.kind() == v1::NodeStatus::WORKER;
    EXPECT_EQ(node.slots_used(), worker ? 2u : 0u);
    ASSERT_EQ(node.groups_size(), worker ? 1 : 0);
    if (!worker) continue;
    EXPECT_EQ(node.groups(0).ShortDebugString(), absl::StrCat("job_id: \"", id_, "\" ranks: 2"));
  }
  b_.End(key, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id_).groups(0).state(), v1::GROUP_STATE_RUNNING);
  a_.End(key, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id_).groups(0).state(), v1::GROUP_STATE_FINISHED);
  EXPECT_THAT(Log(id_), HasSubstr("group 0 starts on workers a (ranks 0-1) and b (ranks 2-3) at site hpc, start 1"));
}

// Ranks report links by rank; the coordinator lists them by the names of the two workers. It keeps the last report of
// each pair. It ignores a rank that does not exist, or that is on the same worker. Workers are listed with their
// interfaces.
TEST_F(CoordinatorPartsTest, KnowsTheLinksBetweenWorkers) {
  const GroupKey key = StartOnTwo();
  v1::RankEvent event;
  for (const auto& [peer, rate] : {std::pair(2u, 1e8), std::pair(1u, 2e8), std::pair(99u, 3e8)}) {
    v1::MeasuredLink* link = event.mutable_links()->add_links();
    link->set_peer_rank(peer);
    link->set_round_trip_seconds(1e-4);
    link->set_bytes_per_second(rate);
  }
  EXPECT_TRUE(coordinator_->Links().empty());
  a_.Send(key, 0, event, now_);
  now_ += absl::Seconds(7);
  const int64_t then = absl::ToUnixMillis(now_.wall);
  event.mutable_links()->mutable_links(0)->set_bytes_per_second(5e7);
  a_.Send(key, 0, event, now_);
  const std::vector<v1::NodeLink> links = coordinator_->Links();
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].from(), "a");
  EXPECT_EQ(links[0].to(), "b");
  EXPECT_EQ(links[0].round_trip_seconds(), 1e-4);
  EXPECT_EQ(links[0].bytes_per_second(), 5e7);
  EXPECT_EQ(links[0].measured_unix_ms(), then);
  for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) {
    if (node.name() != "a") continue;
    ASSERT_EQ(node.interfaces_size(), 1);
    EXPECT_EQ(node.interfaces(0).ShortDebugString(), "name: \"eth0\" address: \"10.0.0.1\" megabits: 1000");
  }
}

// A group of the most ranks that a job may have starts on 1,024 workers at once, and not before all are ready.
TEST_F(CoordinatorPartsTest, StartsTheMostRanksOnManyWorkers) {
  constexpr int kWorkers = 1024;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<FakeWorker>(absl::StrCat("n", i), 16));
    workers.back()->SetAddress(absl::StrCat("10.1.", i / 256, ".", i % 256));
    ASSERT_TRUE(workers.back()->Connect(*coordinator_, now_).ok());
  }
  id_ = Submit({1, 16 * kWorkers});
  const GroupKey key{id_, 0, 1};
  ASSERT_EQ(Status(id_).groups(0).parts_size(), kWorkers);
  FakeWorker* lead = nullptr;
  for (const std::unique_ptr<FakeWorker>& worker : workers) {
    if (absl::StrCat("n", &worker - workers.data()) == Status(id_).groups(0).worker()) lead = worker.get();
  }
  ASSERT_NE(lead, nullptr);
  for (const std::unique_ptr<FakeWorker>& worker : workers) {
    EXPECT_TRUE(lead->running().empty() || lead->running().at(key).launches.empty());
    worker->Receive(now_);
    EXPECT_EQ(worker->slots_used(), 16u);
    EXPECT_EQ(worker->running().at(key).start.parts_size(), kWorkers);
  }
  lead->Receive(now_);
  EXPECT_EQ(lead->running().at(key).launches.size(), 1u);
}

// If a part does not become ready, the start ends on all workers, and the reason names the worker of that part.
TEST_F(CoordinatorPartsTest, GivesUpAStartWhosePartIsNotReady) {
  b_.NeverReady();
  const GroupKey key = StartOnTwo();
  Pass(absl::Seconds(14), {&a_, &b_});
  EXPECT_EQ(a_.running().count(key), 1u);
  Pass(absl::Seconds(1), {&a_, &b_});
  EXPECT_THAT(Log(id_), HasSubstr("worker b was not ready to start its ranks within 15s"));
  EXPECT_THAT(a_.stop_reasons(), ElementsAre(HasSubstr("worker b was not ready")));
  EXPECT_EQ(b_.stop_reasons().size(), 1u);
  EXPECT_EQ(a_.running().count(key), 0u);
}

// A part that fetches the job's files has the time that this takes on a line which many workers share.
TEST_F(CoordinatorPartsTest, APartThatFetchesFilesHasMoreTime) {
  Heartbeat("a:1");
  a_.AllowCommands();
  b_.AllowCommands();
  b_.NeverReady();
  ASSERT_TRUE(a_.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(b_.Connect(*coordinator_, now_).ok());
  v1::SubmitRequest request;
  request.set_submission_id("s1");
  request.mutable_job()->set_name("own");
  request.mutable_job()->mutable_command()->add_arguments("train");
  v1::FileSet& files = *request.mutable_job()->mutable_command()->mutable_files();
  files.set_manifest_sha256(std::string(32, 'x'));
  files.set_manifest_bytes(1);
  files.set_bytes((60 << 20) - 1);
  request.mutable_job()->mutable_groups()->set_ranks(4);
  const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
  ASSERT_TRUE(id.ok()) << id.status();
  a_.Receive(now_);
  b_.Receive(now_);
  const absl::Duration begin = now_.steady;
  while (now_.steady < begin + absl::Hours(6)) {
    now_ += absl::Seconds(4);
    Pass(absl::Milliseconds(500), {&a_, &b_});
  }
  EXPECT_EQ(a_.running().count({*id, 0, 1}), 1u);
  Pass(absl::Seconds(15), {&a_, &b_});
  EXPECT_THAT(Log(*id), HasSubstr("worker b was not ready to start its ranks within 6h15s"));
}

// The coordinator does not store which parts are ready. After its restart, parts that wait say it again, and the group
// starts.
TEST_F(CoordinatorPartsTest, ARestartedCoordinatorLaunchesPartsThatAreReadyAlready) {
  b_.NeverReady();
  const GroupKey key = StartOnTwo();
  Restart();
  ASSERT_TRUE(a_.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(b_.Connect(*coordinator_, now_).ok());
  b_.SayReady(key, now_);
  ReceiveAll();
  EXPECT_TRUE(a_.running().at(key).launches.empty());
  a_.SayReady(key, now_);
  a_.SayReady(key, now_);
  ReceiveAll();
  EXPECT_EQ(a_.running().at(key).launches.size(), 1u);
}

// If a part cannot be prepared, the start ends, and the other part is stopped.
TEST_F(CoordinatorPartsTest, GivesUpAStartWhosePartFails) {
  b_.NeverReady();
  const GroupKey key = StartOnTwo();
  b_.End(key, absl::UnavailableError("no room on /dev/shm"), now_);
  Pass(absl::Seconds(2), {&a_, &b_});
  EXPECT_THAT(Log(id_), HasSubstr("worker b: no room on /dev/shm"));
  EXPECT_EQ(a_.stop_reasons().size(), 1u);
}

// The coordinator does not pass a RemoteStart on to a worker that runs no part of the group.
TEST_F(CoordinatorPartsTest, RefusesStartsOnNodesThatAreNotTheGroups) {
  ASSERT_TRUE(c_.Connect(*coordinator_, now_).ok());
  const GroupKey key = StartOnTwo();
  const std::vector<GroupKey> nothing = c_.started();
  a_.Remote(key, "10.0.0.3", {"-mca", "ess", "env"}, now_);
  ReceiveAll();
  EXPECT_EQ(c_.started(), nothing);
  EXPECT_THAT(Reason(), HasSubstr("a start on another node is refused: no other part of the group is at 10.0.0.3"));
  EXPECT_EQ(b_.stop_reasons().size(), 1u);
}

// The coordinator does not pass on a RemoteStart from a worker that does not lead the group.
TEST_F(CoordinatorPartsTest, RefusesStartsThatTheLeadDidNotAskFor) {
  const GroupKey key = StartOnTwo();
  b_.Remote(key, "10.0.0.1", {"x"}, now_);
  EXPECT_THAT(Reason(), HasSubstr("worker b does not lead the group"));
}

// The coordinator does not pass on a RemoteStart with too many or too long arguments.
TEST_F(CoordinatorPartsTest, RefusesStartsWithTooManyArguments) {
  const GroupKey key = StartOnTwo();
  a_.Remote(key, "10.0.0.2", {std::string(70000, 'x')}, now_);
  EXPECT_THAT(Reason(), HasSubstr("its arguments are too long"));
}

// When the worker without rank 0 is killed, mpirun notices. The reason names the worker that is gone. The other worker
// is free at once, and the group starts again on the workers that are left.
TEST_F(CoordinatorPartsTest, StartsElsewhereWhenAWorkerIsKilled) {
  const GroupKey key = RunOnTwo();
  ASSERT_TRUE(c_.Connect(*coordinator_, now_).ok());
  b_.Crash(now_);
  a_.End(key, absl::UnavailableError("mpirun exited with status 205"), now_);
  EXPECT_THAT(Reason(), HasSubstr("worker b is gone; worker a: mpirun exited with status 205"));
  Pass(absl::Seconds(1), {&a_, &c_});
  EXPECT_THAT(c_.started(), ElementsAre(GroupKey{id_, 0, 2}));
  EXPECT_EQ(a_.running().count({id_, 0, 2}), 1u);
}

// When the lead is killed, the other worker's part ends, because mpirun's daemon there has lost its mpirun. The group
// then ends without the lead's own report.
TEST_F(CoordinatorPartsTest, StartsElsewhereWhenTheLeadIsKilled) {
  const GroupKey key = RunOnTwo();
  ASSERT_TRUE(c_.Connect(*coordinator_, now_).ok());
  a_.Crash(now_);
  b_.End(key, absl::UnavailableError("orted exited with status 1"), now_);
  EXPECT_THAT(Reason(), HasSubstr("worker a is gone; worker b: orted exited with status 1"));
  Pass(absl::Seconds(1), {&b_, &c_});
  EXPECT_THAT(c_.started(), ElementsAre(GroupKey{id_, 0, 2}));
}

// A worker that falls silent is lost after its lease. The parts on other workers are then stopped, with a reason that
// names it.
TEST_F(CoordinatorPartsTest, StopsTheOtherPartsOfALostWorker) {
  RunOnTwo();
  ASSERT_TRUE(c_.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(11), {&a_, &c_});
  EXPECT_THAT(a_.stop_reasons(), ElementsAre(HasSubstr("worker b has not answered since")));
  EXPECT_THAT(c_.started(), ElementsAre(GroupKey{id_, 0, 2}));
}

// If a part other than the lead's fails first, mpirun may know more. The group's end waits for the lead's report. Then
// all parts end.
TEST_F(CoordinatorPartsTest, WaitsForTheLeadsWord) {
  const GroupKey key = RunOnTwo();
  b_.End(key, absl::UnavailableError("rank 2 is gone without a word"), now_);
  EXPECT_EQ(Status(id_).groups(0).state(), v1::GROUP_STATE_RUNNING);
  a_.End(key, absl::UnavailableError("rank 2 ended by signal 9 (Killed)"), now_);
  EXPECT_THAT(Reason(),
              HasSubstr("worker a: rank 2 ended by signal 9 (Killed); before that, worker b: rank 2 is gone"));
}

// The group's end waits only a bounded time for the lead's report. After that the lead is stopped.
TEST_F(CoordinatorPartsTest, WaitsForTheLeadsWordWithinABound) {
  const GroupKey key = RunOnTwo();
  b_.End(key, absl::UnavailableError("orted ended by signal 9 (Killed)"), now_);
  Pass(absl::Milliseconds(1000), {&a_, &b_});
  EXPECT_TRUE(a_.stop_reasons().empty());
  Pass(absl::Milliseconds(500), {&a_, &b_});
  EXPECT_THAT(a_.stop_reasons(), ElementsAre(HasSubstr("worker b: orted ended by signal 9")));
}

// The end of the part whose rank failed first becomes the group's end. In this test it is an error that no new start
// would mend.
TEST_F(CoordinatorPartsTest, BelievesThePartThatFailedFirst) {
  const GroupKey key = RunOnTwo();
  v1::RankEvent failed;
  failed.mutable_failed()->set_code(static_cast<int>(absl::StatusCode::kNotFound));
  failed.mutable_failed()->set_message("there is no file /data/train");
  b_.Send(key, 3, failed, now_);
  a_.End(key, absl::UnavailableError("rank 3 exited with status 1"), now_);
  b_.End(key, absl::NotFoundError("rank 3: there is no file /data/train"), now_);
  EXPECT_EQ(Status(id_).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(Status(id_).reason(), HasSubstr("worker b: rank 3: there is no file /data/train"));
}

// The address in a worker's hello becomes a word of mpirun's command line. A hello whose address is no IP address is
// refused.
TEST_F(CoordinatorPartsTest, RefusesAnAddressThatIsNone) {
  for (const char* wrong : {"10.0.0.1,--mca", "host", "fe80::1%eth0", "10.0.0.256"}) {
    a_.SetAddress(wrong);
    EXPECT_EQ(a_.Connect(*coordinator_, now_).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

// A worker may report only for the ranks that it runs.
TEST_F(CoordinatorPartsTest, IgnoresReportsForRanksOfOtherParts) {
  const GroupKey key = StartOnTwo();
  b_.Progress(key, 7, now_);
  EXPECT_FALSE(Status(id_).groups(0).has_progress());
}

// A coordinator that starts again goes on with a group on several workers.
TEST_F(CoordinatorPartsTest, GoesOnAfterARestart) {
  const GroupKey key = RunOnTwo();
  a_.Disconnect(now_);
  b_.Disconnect(now_);
  Restart();
  ASSERT_TRUE(a_.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(b_.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(3), {&a_, &b_});
  EXPECT_TRUE(a_.stop_reasons().empty());
  EXPECT_TRUE(b_.stop_reasons().empty());
  b_.End(key, absl::OkStatus(), now_);
  a_.End(key, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id_).groups(0).state(), v1::GROUP_STATE_FINISHED);
}

// A part that has ended well stays ended if the coordinator restarts before the other parts have ended.
TEST_F(CoordinatorPartsTest, RemembersAnEndedPart) {
  const GroupKey key = RunOnTwo();
  b_.End(key, absl::OkStatus(), now_);
  a_.Disconnect(now_);
  b_.Receive(now_);
  b_.Disconnect(now_);
  Restart();
  ASSERT_TRUE(a_.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(b_.Connect(*coordinator_, now_).ok());
  Pass(absl::Seconds(3), {&a_, &b_});
  a_.End(key, absl::OkStatus(), now_);
  EXPECT_EQ(Status(id_).groups(0).state(), v1::GROUP_STATE_FINISHED);
}

// A worker that is back after its group was placed elsewhere is told to stop its part.
TEST_F(CoordinatorPartsTest, StopsAPartOfAnOldStart) {
  const GroupKey key = RunOnTwo();
  b_.Disconnect(now_);
  a_.End(key, absl::UnavailableError("mpirun exited with status 205"), now_);
  ASSERT_TRUE(b_.Connect(*coordinator_, now_).ok());
  b_.Receive(now_);
  EXPECT_THAT(b_.stop_reasons(), ElementsAre(HasSubstr("was given up")));
}

// Cancelling the job stops all parts.
TEST_F(CoordinatorPartsTest, CancelStopsAllParts) {
  RunOnTwo();
  ASSERT_TRUE(coordinator_->Cancel(id_, now_).ok());
  a_.Receive(now_);
  b_.Receive(now_);
  EXPECT_EQ(a_.stop_reasons().size(), 1u);
  EXPECT_EQ(b_.stop_reasons().size(), 1u);
}

}  // namespace
}  // namespace hooke
