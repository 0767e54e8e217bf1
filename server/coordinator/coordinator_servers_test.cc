// Shows, in virtual time, that the coordinator knows servers by identity, and uses them only at addresses where it
// reached them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_server.h"
#include "server/coordinator/fake_worker.h"
#include "server/records/job_store.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kRefused[] = "advertises x:9, which the coordinator cannot reach: connection refused; check --advertise";

class CoordinatorServersTest : public CoordinatorFixture {
 protected:
  CoordinatorServersTest() { EXPECT_TRUE(w1_.Connect(*coordinator_, now_).ok()); }

  // Sends a heartbeat of the process `instance` of server `id`. Returns the problem that the coordinator answers;
  // empty: none.
  std::string Beat(const std::string& id, const std::string& instance, const std::string& address) {
    v1::ServerHeartbeatRequest request;
    request.set_server_id(id);
    request.set_instance(instance);
    request.set_address(address);
    const absl::StatusOr<v1::ServerHeartbeatResponse> response = coordinator_->ServerHeartbeat(request, now_);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? response->problem() : "";
  }

  // Answers the dials that are due, and returns the dialed addresses. The process `instance` of server `id` answers at
  // `address`. Nobody answers at other addresses.
  std::vector<std::string> Answer(const std::string& address, const std::string& id, const std::string& instance) {
    std::vector<std::string> dialed;
    for (const ServerDial& dial : coordinator_->TakeDials()) {
      dialed.push_back(dial.address);
      DialAnswer answer = {absl::UnavailableError("connection refused"), "", ""};
      if (dial.address == address) answer = {absl::OkStatus(), id, instance};
      coordinator_->ServerDialed(dial, answer, now_);
    }
    return dialed;
  }

  // Lets time pass without the fixture's server b:1. Each of `beats` is a live server.
  struct Alive {
    std::string id, instance, address;
  };
  void PassWith(absl::Duration time, const std::vector<Alive>& beats, const Alive& answers) {
    for (const absl::Duration end = now_.steady + time; now_.steady < end;) {
      now_ += absl::Milliseconds(500);
      for (const Alive& server : beats) Beat(server.id, server.instance, server.address);
      w1_.Heartbeat(now_);
      coordinator_->Tick(now_);
      Answer(answers.address, answers.id, answers.instance);
      w1_.Receive(now_);
    }
  }

  std::string ProblemOf(const std::string& id) {
    for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) {
      if (node.server_id() == id) return node.problem();
    }
    return "no such server";
  }

  FakeWorker w1_{"w1", 4};
};

// A server advertises a wrong address. The job waits and shows why, and the server is told why. The job starts as soon
// as the server can be reached. Its user need not submit it again.
TEST_F(CoordinatorServersTest, AWrongAddressIsSaid) {
  Pass(absl::Seconds(5), {&w1_}, /*server_lives=*/false);
  EXPECT_EQ(Beat("id", "p", "x:9"), "");
  const std::string job = Submit({1, 2});
  EXPECT_EQ(Status(job).reason(),
            "1st in the queue; all servers are wanted; one advertises x:9, where the coordinator is dialing it")
      << "before the answer";
  Answer("", "", "");
  EXPECT_EQ(Status(job).reason(), absl::StrCat("1st in the queue; no server can be used; one ", kRefused));
  EXPECT_EQ(ProblemOf("id"), kRefused);
  EXPECT_EQ(Beat("id", "p", "x:9"), kRefused);
  PassWith(absl::Seconds(20), {{"id", "p", "x:9"}}, {});
  EXPECT_THAT(w1_.started(), IsEmpty());
  EXPECT_EQ(Status(job).reason(), absl::StrCat("1st in the queue; no server can be used; one ", kRefused));

  // The address begins to work. The next dial is at most five seconds away.
  PassWith(absl::Seconds(6), {{"id", "p", "x:9"}}, {"id", "p", "x:9"});
  EXPECT_EQ(Beat("id", "p", "x:9"), "");
  EXPECT_EQ(ProblemOf("id"), "");
  EXPECT_THAT(Status(job).servers(), ElementsAre("x:9"));
  EXPECT_EQ(w1_.started().size(), 1u);
}

// Dials of a server that cannot be reached become rarer. At most one dial of a server is under way.
TEST_F(CoordinatorServersTest, DialsOneAtATimeAndPauses) {
  Beat("id", "p", "x:9");
  Beat("id", "p", "x:9");
  coordinator_->Tick(now_);
  std::vector<ServerDial> dials = coordinator_->TakeDials();
  ASSERT_EQ(dials.size(), 1u);
  coordinator_->ServerDialed(dials[0], {absl::UnavailableError("no"), "", ""}, now_);
  int dialed = 0;
  for (int i = 0; i < 120; ++i) {
    now_ += absl::Milliseconds(500);
    Beat("id", "p", "x:9");
    coordinator_->Tick(now_);
    dialed += static_cast<int>(Answer("", "", "").size());
  }
  EXPECT_THAT(dialed, testing::AllOf(testing::Ge(11), testing::Le(16))) << "in a minute";
  coordinator_->ServerDialed(dials[0], {absl::OkStatus(), "id", "p"}, now_);
  EXPECT_NE(ProblemOf("id"), "") << "the answer to an old dial, or a second one, changes nothing";
}

// Two servers advertise the same address, as with the default --advertise on two hosts. The coordinator knows them as
// two. It uses the one that answers there, and tells the other one why it is not used.
TEST_F(CoordinatorServersTest, TwoServersAtOneAddress) {
  EXPECT_EQ(Beat("11111111aa", "p1", "b:7"), "");
  Answer("b:7", "11111111aa", "p1");
  EXPECT_EQ(Beat("22222222bb", "p2", "b:7"), "");
  EXPECT_THAT(Answer("b:7", "11111111aa", "p1"), ElementsAre("b:7"));
  EXPECT_EQ(Beat("22222222bb", "p2", "b:7"),
            "advertises b:7, but b:7 is also advertised by server 11111111, which answers there; give --advertise an "
            "address that workers reach");
  EXPECT_EQ(Beat("11111111aa", "p1", "b:7"), "");
  EXPECT_THAT(Status(Submit({1, 2})).servers(), ElementsAre("b:1", "b:7"));
  const std::vector<v1::NodeStatus> nodes = coordinator_->Nodes(now_);
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.name() == "b:7"; }), 2);
}

// After one failed dial, a server that was reached before is still used, because the machine may have been busy. After
// two failed dials it is not. The users of its jobs are told, and again when it can be reached.
TEST_F(CoordinatorServersTest, AnAddressThatBecomesWrong) {
  const Alive server = {"id", "p", "x:9"};
  PassWith(absl::Seconds(1), {server}, server);
  const std::string job = Submit({1, 2});
  now_ += absl::Seconds(31);
  Beat("id", "p", "x:9");
  EXPECT_THAT(Answer("", "", ""), ElementsAre("x:9"));
  EXPECT_EQ(ProblemOf("id"), "");
  PassWith(absl::Seconds(1), {server}, {});
  EXPECT_EQ(ProblemOf("id"), kRefused);
  EXPECT_THAT(Log(job), HasSubstr(absl::StrCat("server id ", kRefused)));
  PassWith(absl::Seconds(10), {server}, server);
  EXPECT_THAT(Log(job), HasSubstr("server x:9 is reached at its address"));
}

// A server comes back at another address and is still the same server. Its jobs' groups start again with the new
// address. The coordinator still knows that address after a restart.
TEST_F(CoordinatorServersTest, AServerMoves) {
  Pass(absl::Seconds(5), {&w1_}, /*server_lives=*/false);
  PassWith(absl::Seconds(1), {{"id", "p1", "x:9"}}, {"id", "p1", "x:9"});
  const std::string ended = Submit({1, 1});
  w1_.Receive(now_);
  ASSERT_TRUE(coordinator_->Cancel(ended, now_).ok());
  w1_.Receive(now_);
  const std::string job = Submit({2, 2});
  w1_.Receive(now_);
  EXPECT_THAT(Status(job).servers(), ElementsAre("x:9"));

  // The jobs get the new address only after the coordinator has reached the server there.
  PassWith(absl::Seconds(5), {}, {});
  PassWith(absl::Seconds(2), {{"id", "p2", "y:9"}}, {});
  EXPECT_THAT(Status(job).servers(), ElementsAre("x:9"));
  PassWith(absl::Seconds(6), {{"id", "p2", "y:9"}}, {"id", "p2", "y:9"});
  EXPECT_THAT(Status(job).servers(), ElementsAre("y:9"));
  EXPECT_THAT(Status(ended).servers(), ElementsAre("y:9")) << "its center is exported from there";
  EXPECT_THAT(Log(job), HasSubstr("server x:9 has moved to y:9"));
  EXPECT_THAT(Status(job).groups(0).silences(), IsEmpty());
  ASSERT_EQ(w1_.running().size(), 2u);
  for (const auto& [key, run] : w1_.running()) {
    EXPECT_EQ(key.incarnation, 2u);
    EXPECT_THAT(run.start.group().servers(), ElementsAre("y:9"));
    EXPECT_FALSE(run.stopping);
  }

  w1_.Disconnect(now_);
  Restart();
  ASSERT_TRUE(w1_.Connect(*coordinator_, now_).ok());
  PassWith(absl::Seconds(1), {{"id", "p3", "z:9"}}, {"id", "p3", "z:9"});
  EXPECT_THAT(Status(job).servers(), ElementsAre("z:9"));
}

// Somebody starts a second server on a copy of a server's folder. While the first server lives, the second is refused,
// and told what to do.
TEST_F(CoordinatorServersTest, ACopiedFolder) {
  PassWith(absl::Seconds(1), {{"id", "p1", "x:9"}}, {"id", "p1", "x:9"});
  const std::string job = Submit({1, 2});
  PassWith(absl::Seconds(30), {{"id", "p1", "x:9"}, {"id", "p2", "y:9"}}, {"id", "p1", "x:9"});
  const std::string why = Beat("id", "p2", "y:9");
  EXPECT_THAT(why, HasSubstr("has the identity id of a server that is alive at x:9: one has a copy of the other's"));
  EXPECT_EQ(Beat("id", "p1", "x:9"), "");
  EXPECT_THAT(Status(job).servers(), testing::Contains("x:9"));
  const std::vector<v1::NodeStatus> nodes = coordinator_->Nodes(now_);
  const auto copy = std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.name() == "y:9"; });
  ASSERT_NE(copy, nodes.end());
  EXPECT_EQ(copy->problem(), why);

  // The first server ends, so the second one is accepted as that server.
  PassWith(absl::Seconds(6), {{"id", "p2", "y:9"}}, {"id", "p2", "y:9"});
  EXPECT_EQ(Beat("id", "p2", "y:9"), "");
  EXPECT_THAT(Status(job).servers(), testing::Contains("y:9"));
}

// A server that is stopped and started again at its address is accepted at once.
TEST_F(CoordinatorServersTest, AServerStartsAgain) {
  PassWith(absl::Seconds(1), {{"id", "p1", "x:9"}}, {"id", "p1", "x:9"});
  EXPECT_EQ(Beat("id", "p2", "x:9"), "");
  EXPECT_THAT(Answer("x:9", "id", "p2"), ElementsAre("x:9"));
  EXPECT_EQ(ProblemOf("id"), "");
  EXPECT_THAT(Status(Submit({1, 2})).servers(), ElementsAre("b:1", "x:9"));
  EXPECT_NE(Beat("id", "p1", "x:9"), "") << "the process before lives after all";
}

// A server is gone with its folder, and a new one takes its address. When the old server is lost, its unfinished jobs
// move to the new one, where groups make the shard again. A job that has ended does not move, because its center was on
// the old server.
TEST_F(CoordinatorServersTest, ANewServerInTheOldOnesPlace) {
  Pass(absl::Seconds(5), {&w1_}, /*server_lives=*/false);
  PassWith(absl::Seconds(1), {{"old", "p1", "x:9"}}, {"old", "p1", "x:9"});
  const std::string job = Submit({1, 2});
  PassWith(absl::Seconds(5), {{"new", "p2", "x:9"}}, {"new", "p2", "x:9"});
  EXPECT_THAT(Log(job), testing::Not(HasSubstr("is another one now")));
  PassWith(absl::Seconds(10), {{"new", "p2", "x:9"}}, {"new", "p2", "x:9"});
  EXPECT_THAT(Log(job), HasSubstr("server x:9 is another one now, new in place of old, which has not answered for"));
  EXPECT_THAT(Status(job).groups(0).silences(), IsEmpty());
  PassWith(absl::Seconds(11), {{"new", "p3", "y:9"}}, {"new", "p3", "y:9"});
  EXPECT_THAT(Status(job).servers(), ElementsAre("y:9"));
}

// A server of a job comes back at the address of another server of that job, which is gone. It does not get the other
// server's shard, because it has its own.
TEST_F(CoordinatorServersTest, AServerAtTheAddressOfItsPeer) {
  Pass(absl::Seconds(5), {&w1_}, /*server_lives=*/false);
  Beat("one", "p1", "x:9");
  Answer("x:9", "one", "p1");
  Beat("two", "p2", "y:9");
  Answer("y:9", "two", "p2");
  const std::string job = Submit({1, 2});
  EXPECT_THAT(Status(job).servers(), ElementsAre("x:9", "y:9"));
  PassWith(absl::Seconds(20), {{"two", "p3", "x:9"}}, {"two", "p3", "x:9"});
  ASSERT_EQ(Stored().at(0).servers.size(), 2u);
  EXPECT_EQ(Stored().at(0).servers[0].id, "one");
  EXPECT_EQ(Stored().at(0).servers[1].id, "two");
  EXPECT_THAT(Status(job).servers(), ElementsAre("x:9", "x:9")) << "the first one's last address";
}

// Jobs that an older version stored name servers by address only. They get the identity of the server that is reached
// there, and follow it from then on.
TEST_F(CoordinatorServersTest, JobsOfAnOlderVersion) {
  w1_.Receive(now_);
  const std::string job = Submit({1, 2});
  w1_.Disconnect(now_);
  std::vector<JobRecord> jobs = Stored();
  ASSERT_EQ(jobs.at(0).servers.size(), 1u);
  jobs[0].servers = {{"", "x:9"}};
  ASSERT_TRUE((*JobStore::Open(store_))->Write(jobs, {}).ok());
  Restart();
  ASSERT_TRUE(w1_.Connect(*coordinator_, now_).ok());
  PassWith(absl::Seconds(1), {{"id", "p1", "x:9"}}, {"id", "p1", "x:9"});
  EXPECT_EQ(Stored().at(0).servers.at(0).id, "id");
  const std::vector<v1::NodeStatus> nodes = coordinator_->Nodes(now_);
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.name() == "x:9"; }), 1);
  PassWith(absl::Seconds(11), {{"id", "p2", "y:9"}}, {"id", "p2", "y:9"});
  EXPECT_THAT(Status(job).servers(), ElementsAre("y:9"));
}

}  // namespace
}  // namespace hooke
