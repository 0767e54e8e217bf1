// How the Coordinator tells which workers' sessions have something to send or are to be ended.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "proto/coordinator.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CoordinatorReadyTest : public CoordinatorFixture {
 protected:
  SessionId Connect(const std::string& name) {
    v1::WorkerHello hello;
    hello.set_name(name);
    hello.set_instance("i");
    hello.set_site("hpc");
    hello.set_slots(2);
    return *coordinator_->Hello(hello, now_);
  }
  void Echo(SessionId session) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_sent_ns(1);
    EXPECT_TRUE(coordinator_->Message(session, message, now_).ok());
  }
  void Report(SessionId session, const v1::GroupStart& group, uint64_t number) {
    v1::WorkerMessage message;
    message.mutable_event()->mutable_group()->set_job_id(group.job_id());
    message.mutable_event()->mutable_group()->set_incarnation(group.incarnation());
    message.mutable_event()->set_number(number);
    v1::RankProgress* progress = message.mutable_event()->mutable_report()->mutable_event()->mutable_progress();
    progress->set_step(number);
    progress->set_phase(v1::RankProgress::COMPUTE);
    EXPECT_TRUE(coordinator_->Message(session, message, now_).ok());
  }
  // Returns the result of TakeReady as texts such as "1 open" or "1 ended".
  std::vector<std::string> Ready() {
    std::vector<std::string> ready;
    for (const Coordinator::Ready& one : coordinator_->TakeReady()) {
      ready.push_back(std::to_string(one.session) + (one.open ? " open" : " ended"));
    }
    return ready;
  }
};

// TakeReady returns a session once when commands become due, and not for an acknowledgement that may wait.
TEST_F(CoordinatorReadyTest, OncePerCommand) {
  const SessionId session = Connect("w1");
  EXPECT_THAT(Ready(), ElementsAre("1 open"));
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(coordinator_->TakeCommands(session).commands.size(), 1u);  // The session's welcome.
  Echo(session);
  Echo(session);
  EXPECT_THAT(Ready(), ElementsAre("1 open"));
  EXPECT_EQ(coordinator_->TakeCommands(session).commands.size(), 1u);

  Submit({1, 1});
  EXPECT_THAT(Ready(), ElementsAre("1 open"));
  const std::vector<v1::WorkerCommand> start = coordinator_->TakeCommands(session).commands;
  ASSERT_EQ(start.size(), 1u);
  Report(session, start[0].start().group(), 1);  // The first step is stored, so its acknowledgement goes at once.
  EXPECT_THAT(Ready(), ElementsAre("1 open"));
  EXPECT_EQ(coordinator_->TakeCommands(session).commands.size(), 1u);
  Report(session, start[0].start().group(), 2);  // Further steps are not stored.
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_EQ(coordinator_->TakeCommands(session).commands.size(), 1u);
}

// TakeReady returns sessions that are to be ended: a session that a newer one has replaced, and after Stop all
// sessions.
TEST_F(CoordinatorReadyTest, EndedSessions) {
  const SessionId first = Connect("w1");
  Ready();
  Connect("w1");
  EXPECT_THAT(Ready(), ElementsAre("1 ended", "2 open"));
  EXPECT_FALSE(coordinator_->TakeCommands(first).open);
  coordinator_->Gone(first, now_);
  coordinator_->Stop();
  EXPECT_THAT(Ready(), ElementsAre("2 ended"));
}

// A session that has gone is not ready any more.
TEST_F(CoordinatorReadyTest, GoneSessions) {
  const SessionId session = Connect("w1");
  coordinator_->Gone(session, now_);
  EXPECT_THAT(Ready(), IsEmpty());
  EXPECT_FALSE(coordinator_->TakeCommands(session).open);
}

// OnReady's function is called without locks, so it may call the Coordinator. It is called once, and then not again
// before TakeReady has emptied the list. OnReady calls it at once if sessions are ready already.
TEST_F(CoordinatorReadyTest, Tells) {
  int told = 0;
  const SessionId first = Connect("w1");
  coordinator_->OnReady([&] {
    ++told;
    EXPECT_EQ(coordinator_->List(SIZE_MAX, now_).jobs.size(), 0u);
  });
  EXPECT_EQ(told, 1);
  Connect("w2");
  EXPECT_EQ(told, 1);
  EXPECT_THAT(Ready(), ElementsAre("1 open", "2 open"));
  Echo(first);
  EXPECT_EQ(told, 2);
  Ready();
  coordinator_->Stop();
  EXPECT_EQ(told, 3);
  Ready();
  coordinator_->OnReady(nullptr);
}

}  // namespace
}  // namespace hooke
