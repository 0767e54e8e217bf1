// Exchanges with servers that are away, stand still, wait for others, or come back without their last exchanges.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "clocks/test_wall_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/exchange_fixture.h"
#include "worker/exchange/run_exchange.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// If a server cannot be reached, only its part of the exchange fails. When the server is back, exchanges work again.
TEST_F(ExchangeTest, OneServerGone) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[1]->SetReachable(false);
  std::vector<ServerOutcome> outcomes = RunExchange(*client, Call(1, absl::Seconds(1)), group, Into(group));
  EXPECT_TRUE(outcomes[0].status.ok());
  EXPECT_EQ(outcomes[1].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(outcomes[1].status.message()), HasSubstr("second:2"));
  EXPECT_FALSE(IsFatalExchangeError(outcomes[1].status));
  EXPECT_EQ(group.front(), 4.0f);  // 5 - (5 - 1) / 4.
  EXPECT_EQ(group.back(), 5.0f);

  servers_[1]->SetReachable(true);
  ExpectAllOk(RunExchange(*client, Call(2), group, Into(group)));
  EXPECT_LT(group.back(), 5.0f);
}

// A server that has lost its shard gets it back within the exchange, from the values that `recreate` gives.
TEST_F(ExchangeTest, RecreatesALostShard) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  ExpectAllOk(RunExchange(*client, Call(1), group, Into(group)));
  recreate_from_ = group;
  servers_[0]->Forget();
  EXPECT_TRUE(servers_[0]->center().empty());
  ExpectAllOk(RunExchange(*client, Call(2), group, Into(group)));
  EXPECT_EQ(servers_[0]->center().front(), 4.0f);  // This is the group's own value, so the exchange changes nothing.
  EXPECT_EQ(group.front(), 4.0f);
}

// A server that failed the previous exchange comes back without its disk. It gets the exchange's whole time to take its
// shard again, not ExchangePatience::first: other groups may be creating the shard meanwhile.
TEST_F(ExchangeTest, RecreatesInTheFullTimeout) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetReachable(false);
  EXPECT_FALSE(RunExchange(*client, Call(1, absl::Milliseconds(100)), group, Into(group))[0].status.ok());
  recreate_from_ = group;
  servers_[0]->Forget();
  servers_[0]->MakeWait(100);
  servers_[0]->SetReachable(true);
  ExpectAllOk(RunExchange(*client, {2, {absl::Seconds(30), absl::Milliseconds(200)}}, group, Into(group)));
}

// A machine's clock that is set back does not prolong the wait for a silent server.
TEST_F(ExchangeTest, AClockThatIsSetBackChangesNoDeadline) {
  Attach(Ramp(1, 0));
  servers_[0]->SetAnswering(false);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  std::thread setter([] {
    absl::SleepFor(absl::Milliseconds(100));
    StepWallClock(-absl::Hours(1));
  });
  const absl::Time begun = SteadyTime();
  const absl::Status status = RunExchange(*client, Call(1, absl::Milliseconds(300)), group, Into(group))[0].status;
  EXPECT_LT(SteadyTime() - begun, absl::Seconds(20));
  setter.join();
  StepWallClock(absl::Hours(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

// If a server has stopped without closing its connection, the exchange ends at its deadline. That holds even if the
// server has never answered.
TEST_F(ExchangeTest, StoppedServer) {
  Attach(Ramp(1, 0));
  servers_[0]->SetAnswering(false);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    std::vector<ServerOutcome> outcomes = RunExchange(*client, Call(sequence, absl::Seconds(1)), group, Into(group));
    EXPECT_EQ(outcomes[0].status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(outcomes[1].status.ok()) << outcomes[1].status;
  }
  EXPECT_EQ(group.front(), 5.0f);
  servers_[0]->SetAnswering(true);
  ExpectAllOk(RunExchange(*client, Call(4), group, Into(group)));
  EXPECT_LT(group.front(), 5.0f);
}

// An exchange waits only once for a server that is away. Later exchanges skip it at once, however long their patience
// is, until it has answered a Locate call.
TEST_F(ExchangeTest, AnAbsentServerIsWaitedForOnce) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  uint64_t sequence = 0;
  ExpectAllOk(RunExchange(*client, Call(++sequence), group, Into(group)));
  for (const bool killed : {false, true}) {
    if (killed) {
      servers_[0]->SetReachable(false);
    } else {
      servers_[0]->SetAnswering(false);
    }
    ExchangeCall call = Call(++sequence, absl::Milliseconds(100));
    // With a refused connection, the exchange ends long before that.
    if (killed) call.patience.silence = absl::Hours(1);
    EXPECT_FALSE(RunExchange(*client, call, group, Into(group))[0].status.ok());
    EXPECT_TRUE(client->Skips("first:1"));
    EXPECT_FALSE(client->Skips("second:2"));
    const int streams = servers_[0]->streams();
    for (int i = 0; i < 100; ++i) {
      call = Call(++sequence, absl::Hours(1));
      call.patience.skips_absent = true;
      const std::vector<ServerOutcome> outcomes = RunExchange(*client, call, group, Into(group));
      EXPECT_EQ(outcomes[0].status.code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_EQ(WantedServer(outcomes[0].status), "first:1");
      EXPECT_TRUE(outcomes[1].status.ok()) << outcomes[1].status;
    }
    EXPECT_EQ(servers_[0]->streams(), streams) << "nothing is tried on the caller's time";
    servers_[0]->SetReachable(true);
    servers_[0]->SetAnswering(true);
    AwaitBack(*client);
    call = Call(++sequence);
    call.patience.skips_absent = true;
    ExpectAllOk(RunExchange(*client, call, group, Into(group)));
  }
}

// Exchanges try a server that waits for a quorum again and again without pauses. Otherwise two groups could miss each
// other for minutes. The server is not reported absent.
TEST_F(ExchangeTest, AServerThatWaitsForAQuorumIsNotAway) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetWaitingForGroups(true);
  uint64_t sequence = 0;
  const auto call = [&sequence](absl::Duration patience) {
    ExchangeCall call = Call(++sequence, patience);
    call.patience.skips_absent = call.patience.awaits_quorum = true;
    return call;
  };
  const absl::Time start = SteadyTime();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(RunExchange(*client, call(absl::Milliseconds(20)), group, Into(group))[0].status.ok());
    AwaitBack(*client);
  }
  EXPECT_LT(SteadyTime() - start, absl::Seconds(10)) << "the pauses between tries have grown";
  servers_[0]->SetWaitingForGroups(false);
  ExpectAllOk(RunExchange(*client, call(absl::Seconds(30)), group, Into(group)));
  EXPECT_EQ(absences_, 0);

  servers_[0]->SetAnswering(false);
  EXPECT_FALSE(RunExchange(*client, call(absl::Milliseconds(20)), group, Into(group))[0].status.ok());
  const absl::Time end = SteadyTime() + absl::Seconds(20);
  while (absences_ == 0 && SteadyTime() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(absences_, 1) << "a server that answers nothing is away under such a rule, too";
}

// A server that can be reached may also answer UNAVAILABLE. Such an exchange is repeated for longer than one with a
// server that cannot be reached.
TEST_F(ExchangeTest, UnavailableByTheServersWordIsNoBrokenConnection) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetError(absl::UnavailableError("the round is not complete; try again"));
  ExchangeCall call = Call(1);
  call.patience.unreachable = absl::Milliseconds(1);
  client->Start(call, group, Into(group));
  const absl::Time end = SteadyTime() + absl::Seconds(20);
  while (servers_[0]->streams() < 4 && SteadyTime() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GE(servers_[0]->streams(), 4);
  servers_[0]->SetError(absl::OkStatus());
  ExpectAllOk(client->Wait());
}

// A Locate call that fails right after a restart of the server is repeated, even if no further exchange follows.
TEST_F(ExchangeTest, ASetbackOutlivesAFailedQuestion) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  EXPECT_TRUE(calls_[0]->Save(SaveOf(sender_), absl::InfiniteFuture()).ok());
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) {
    ExpectAllOk(RunExchange(*client, Call(sequence), group, Into(group)));
  }
  servers_[0]->FailQuestions(1);
  servers_[0]->Restart();
  ExpectAllOk(RunExchange(*client, Call(6), group, Into(group)));
  AwaitSetbacks(1);
  EXPECT_THAT(Setbacks()[0], HasSubstr("went back by 5 exchanges"));
}

// The last exchange of a job reaches a server that was away, without waiting until it has answered a Locate call.
TEST_F(ExchangeTest, TheLastExchangeSkipsNobody) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  servers_[0]->SetReachable(false);
  EXPECT_FALSE(RunExchange(*client, Call(1, absl::Milliseconds(100)), group, Into(group))[0].status.ok());
  servers_[0]->SetReachable(true);
  ExpectAllOk(RunExchange(*client, Call(2), group, Into(group)));
}

// A server that restarts from its snapshot tells which exchanges the snapshot has. The group reports once which
// exchanges are lost.
TEST_F(ExchangeTest, ASnapshotTakesExchangesBack) {
  Attach(Ramp(1, 0));
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  uint64_t sequence = 0;
  const auto exchange = [&](int times) {
    for (int i = 0; i < times; ++i) ExpectAllOk(RunExchange(*client, Call(++sequence), group, Into(group)));
  };
  exchange(3);
  EXPECT_TRUE(calls_[0]->Save(SaveOf(sender_), absl::InfiniteFuture()).ok());
  exchange(7);
  servers_[0]->Restart();
  exchange(2);
  AwaitSetbacks(1);
  EXPECT_THAT(Setbacks()[0],
              testing::MatchesRegex("server first:1 came back from its snapshot of .*Z: parameters "
                                    "0-376,831 of the center \\(51 %\\) went back by 7 exchanges, .* s"));
  exchange(5);
  EXPECT_EQ(Setbacks().size(), 1u);
}

// The error names the limit that has passed: the one for a server's answer, or the one for the whole exchange.
TEST_F(ExchangeTest, SaysWhichTimeHasPassed) {
  Attach(Ramp(1, 0));
  servers_[0]->SetAnswering(false);
  std::unique_ptr<ExchangeClient> client = Client();
  std::vector<float> group = Ramp(5, 0);
  ExchangeCall call = Call(1, absl::Milliseconds(100));
  EXPECT_THAT(std::string(RunExchange(*client, call, group, Into(group))[0].status.message()),
              testing::HasSubstr("server first:1 did not answer within 100ms"));
  call = Call(2, absl::Seconds(10));
  call.patience.first = absl::Seconds(10);
  call.patience.whole = absl::Milliseconds(150);
  client->Start(call, group, Into(group));
  absl::SleepFor(absl::Milliseconds(200));  // In this time the group could have trained.
  EXPECT_THAT(std::string(client->Wait()[0].status.message()),
              testing::HasSubstr("the exchange with server first:1 was not complete within 150ms"));
}

}  // namespace
}  // namespace hooke
