// Tests the exchange client and the center client with real parameter servers on loopback.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "algorithms/elastic.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/restartable_server_test.h"
#include "worker/exchange/run_exchange.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr double kAlpha = 0.25;
constexpr uint64_t kValues = 45 * kBlockValues + 100;
constexpr absl::Duration kPatience = absl::Seconds(30);

ExchangeCall Call(uint64_t sequence, absl::Duration timeout = kPatience) {
  return {sequence, {timeout, timeout, absl::InfiniteDuration(), timeout}};
}

// Applies answers to a group's values, as training does with rule `elastic`.
AnswerSink Into(std::vector<float>& group) {
  return [&group](const BlockAnswer& answer) {
    ApplyElasticAnswer(answer.values, absl::MakeSpan(group).subspan(answer.first, answer.values.size()));
  };
}

// Every test runs over a Unix socket, over TCP and over gRPC.
class RealServerTest : public ::testing::TestWithParam<DialOptions> {
 protected:
  RealServerTest() {
    for (RestartableServer& server : servers_) calls_.push_back(DialServer(server.address(), GetParam()));
    center_ = MakeCenter(1);
  }

  v1::Sender Sender(uint32_t incarnation, uint32_t rank = 0) {
    v1::Sender sender;
    sender.set_job_id("job-1");
    sender.set_incarnation(incarnation);
    sender.set_rank(rank);
    sender.set_job_key("a job's key");
    return sender;
  }

  CenterOptions OptionsOfCenter(uint32_t incarnation, const std::string& parameter = "w") {
    CenterOptions options;
    options.sender = Sender(incarnation);
    options.job.set_rule(v1::AveragingSpec::ELASTIC);
    options.job.set_alpha(kAlpha);
    options.job.set_groups(1);
    options.job.set_ranks(2);
    options.layout.parameters.push_back({parameter, {kValues}});
    options.partition = Partition(kValues);
    options.servers = {calls_[0].get(), calls_[1].get()};
    options.retry_pause = absl::Milliseconds(20);
    return options;
  }
  std::unique_ptr<CenterClient> MakeCenter(uint32_t incarnation, const std::string& parameter = "w") {
    return std::make_unique<CenterClient>(OptionsOfCenter(incarnation, parameter));
  }

  // Makes the clients of both ranks. The tests call them one after the other.
  std::vector<std::unique_ptr<ExchangeClient>> Clients(uint32_t incarnation) {
    std::vector<std::unique_ptr<ExchangeClient>> clients;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ExchangeOptions options;
      options.sender = Sender(incarnation, rank);
      options.slices = 2;
      options.partition = Partition(kValues);
      options.servers = {calls_[0].get(), calls_[1].get()};
      options.recreate = [this](size_t server, absl::Time deadline) {
        return center_->AttachShard(server, recreate_from_, deadline).status();
      };
      clients.push_back(std::make_unique<ExchangeClient>(std::move(options)));
    }
    return clients;
  }

  static v1::JobSpecForShard QuorumOfTwo() {
    v1::JobSpecForShard job;
    job.set_rule(v1::AveragingSpec::AVERAGE);
    job.set_groups(2);
    job.set_ranks(1);
    job.set_quorum(2);
    job.set_grace_seconds(0);
    job.set_interval(1);
    job.set_epochs(1);
    job.set_steps_per_epoch(1 << 20);
    job.set_parameters(kValues);
    job.mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
    job.mutable_optimizer()->set_learning_rate(1);
    job.mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
    return job;
  }

  void Attach(const std::vector<float>& initial) {
    absl::StatusOr<Attached> attached = center_->Attach(initial, SteadyTime() + kPatience);
    ASSERT_TRUE(attached.ok()) << attached.status();
  }
  std::vector<float> Center() {
    std::vector<float> pulled(kValues);
    absl::Status status = center_->Pull(absl::MakeSpan(pulled), SteadyTime() + kPatience);
    EXPECT_TRUE(status.ok()) << status;
    return pulled;
  }

  void RestartAll() {
    for (RestartableServer& server : servers_) {
      server.Stop();
      server.Start();
    }
  }

  // Asks until the server can be reached.
  static absl::StatusOr<v1::PaceResponse> Pace(const CenterClient& center) {
    const absl::Time until = SteadyTime() + kPatience;
    while (true) {
      absl::StatusOr<v1::PaceResponse> pace = center.Pace(0, SteadyTime() + absl::Seconds(5));
      if (!absl::IsUnavailable(pace.status()) || SteadyTime() >= until) return pace;
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  static void ApplyByHand(std::vector<float>& x, std::vector<float>& center) {
    std::vector<float> answer(x.size());
    ElasticExchange(kAlpha, x, absl::MakeSpan(center), absl::MakeSpan(answer));
    ApplyElasticAnswer(answer, absl::MakeSpan(x));
  }

  static std::vector<float> Ramp(float start, float step) {
    std::vector<float> values(kValues);
    for (uint64_t i = 0; i < kValues; ++i) values[i] = start + step * static_cast<float>(i % 1000);
    return values;
  }

  RestartableServer servers_[2] = {RestartableServer("127.0.0.1"), RestartableServer("127.0.0.1")};
  std::vector<std::unique_ptr<ServerCalls>> calls_;
  std::unique_ptr<CenterClient> center_;
  std::vector<float> recreate_from_;  // The exchanges create a lost shard again from these values.
};

// Two ranks make three exchanges with two servers. The result is that of the elastic rule, bit by bit.
TEST_P(RealServerTest, ExactNumbers) {
  std::vector<float> center = Ramp(1, 0.001f);
  std::vector<float> x = Ramp(-2, 0.002f);
  Attach(center);
  std::vector<float> group = x;
  auto clients = Clients(1);
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    for (auto& client : clients) {
      for (const ServerOutcome& outcome : RunExchange(*client, Call(sequence), group, Into(group))) {
        ASSERT_TRUE(outcome.status.ok()) << outcome.status;
      }
    }
    ApplyByHand(x, center);
  }
  EXPECT_EQ(group, x);
  EXPECT_EQ(Center(), center);
  absl::StatusOr<Attached> again = MakeCenter(2)->Attach(group, SteadyTime() + kPatience);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->last_sequence, 3u);
}

// A stopped server misses its part of the exchange. It restarts from its snapshot and goes on with the values from
// there. No group has to attach again.
TEST_P(RealServerTest, StoppedAndStartedAgain) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  auto clients = Clients(1);
  ExchangeClient& second = *clients[1];  // The second rank's slice lies on the second server.
  ASSERT_TRUE(RunExchange(second, Call(1), group, Into(group))[0].status.ok());
  EXPECT_EQ(group.back(), 4.0f);
  servers_[1].Stop();
  std::vector<ServerOutcome> outcomes = RunExchange(second, Call(2, absl::Milliseconds(300)), group, Into(group));
  EXPECT_EQ(outcomes[0].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(outcomes[0].status.message()), HasSubstr(servers_[1].address()));
  EXPECT_EQ(group.back(), 4.0f);
  servers_[1].Start();
  outcomes = RunExchange(second, Call(3), group, Into(group));
  ASSERT_TRUE(outcomes[0].status.ok()) << outcomes[0].status;
  EXPECT_EQ(group.back() + Center().back(), 6.0f);
}

// A later generation of the job begins, with two groups instead of one. Its group goes on with the center as it was,
// from the generation's first step, also after the servers were started again. The earlier group is told to stop: its
// exchange does not reach the center.
TEST_P(RealServerTest, ALaterGeneration) {
  Attach(Ramp(1, 0));
  std::vector<float> old_group = Ramp(5, 0);
  auto old_clients = Clients(1);
  for (auto& client : old_clients) {
    for (const ServerOutcome& outcome : RunExchange(*client, Call(1), old_group, Into(old_group))) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    }
  }
  CenterOptions options = OptionsOfCenter(5);
  options.job.set_groups(2);
  options.job.set_first_incarnation(5);
  options.job.set_first_step(40);
  center_ = std::make_unique<CenterClient>(std::move(options));
  std::vector<float> group = Ramp(6, 0);
  const absl::StatusOr<Attached> attached = center_->Attach(group, SteadyTime() + kPatience);
  ASSERT_TRUE(attached.ok()) << attached.status();
  EXPECT_EQ(attached->last_sequence, 40u);
  EXPECT_EQ(Center(), Ramp(2, 0));
  for (auto& client : old_clients) {
    for (const ServerOutcome& outcome : RunExchange(*client, Call(2), old_group, Into(old_group))) {
      EXPECT_EQ(outcome.status.code(), absl::StatusCode::kAborted) << outcome.status;
      EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("a generation that is over"));
    }
  }
  EXPECT_EQ(MakeCenter(2)->Attach(old_group, SteadyTime() + kPatience).status().code(), absl::StatusCode::kAborted);
  RestartAll();
  for (auto& client : Clients(5)) {
    for (const ServerOutcome& outcome : RunExchange(*client, Call(41), group, Into(group))) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    }
  }
  EXPECT_EQ(Center(), Ramp(3, 0));
  EXPECT_EQ(group, Ramp(5, 0));
}

// The server's snapshot is older than the group's present incarnation, so the restarted server does not know that
// incarnation. The exchange then attaches the group again.
TEST_P(RealServerTest, ASnapshotOlderThanTheGroupsStart) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  center_ = MakeCenter(2);
  Attach(group);
  auto clients = Clients(2);
  servers_[1].Stop();
  servers_[1].Start();
  const std::vector<ServerOutcome> outcomes = RunExchange(*clients[1], Call(1), group, Into(group));
  ASSERT_TRUE(outcomes[0].status.ok()) << outcomes[0].status;
  EXPECT_EQ(group.back() + Center().back(), 6.0f);
  EXPECT_EQ(RunExchange(*Clients(1)[1], Call(2), group, Into(group))[0].status.code(), absl::StatusCode::kAborted);
}

// A server that restarts with an empty disk gets its shard from the group, in the middle of the exchange.
TEST_P(RealServerTest, LostDisk) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  auto clients = Clients(1);
  ASSERT_TRUE(RunExchange(*clients[1], Call(1), group, Into(group))[0].status.ok());
  servers_[1].Stop();
  servers_[1].LoseDisk();
  recreate_from_ = group;
  servers_[1].Start();
  std::vector<ServerOutcome> outcomes = RunExchange(*clients[1], Call(2), group, Into(group));
  ASSERT_TRUE(outcomes[0].status.ok()) << outcomes[0].status;
  EXPECT_EQ(Center().back(), 4.0f);
}

// Servers save the center on request. Save fails if a server cannot be reached or lacks the exchange asked for.
TEST_P(RealServerTest, SavesAnExchange) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  for (auto& client : Clients(1)) {
    for (const ServerOutcome& outcome : RunExchange(*client, Call(7), group, Into(group))) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    }
  }
  absl::Status saved = center_->Save(7, CenterClient::Ends::kGroup, group, SteadyTime() + kPatience);
  EXPECT_TRUE(saved.ok()) << saved;
  absl::Status lost = center_->Save(8, CenterClient::Ends::kGroup, group, SteadyTime() + kPatience);
  EXPECT_EQ(lost.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("has lost the exchange at step 8; the group goes on from step 7"));
  servers_[1].Stop();
  absl::Status gone = center_->Save(7, CenterClient::Ends::kGroup, group, SteadyTime() + absl::Milliseconds(500));
  EXPECT_FALSE(gone.ok());
  EXPECT_FALSE(IsFatalExchangeError(gone)) << gone;
}

// A stop is not lost by servers that go back to a snapshot: neither if they no longer know this start of the group when
// it stops the job, nor if they are started again afterwards.
TEST_P(RealServerTest, AStopOutlivesRestarts) {
  const std::vector<float> values = Ramp(1, 0);
  Attach(values);
  const std::unique_ptr<CenterClient> center = MakeCenter(2);
  ASSERT_TRUE(center->Attach(values, SteadyTime() + kPatience).ok());
  RestartAll();
  EXPECT_TRUE(absl::IsNotFound(Pace(*center).status()));
  ASSERT_TRUE(center->AttachAgain(SteadyTime() + kPatience).ok());
  EXPECT_FALSE(Pace(*center)->stops());
  RestartAll();
  const absl::Status saved = center->Save(0, CenterClient::Ends::kJob, values, SteadyTime() + kPatience);
  ASSERT_TRUE(saved.ok()) << saved;
  RestartAll();
  EXPECT_TRUE(Pace(*center)->stops());
}

// A server's final refusal comes back at once with its code: a replaced incarnation, another layout, or a job that has
// ended.
TEST_P(RealServerTest, FinalErrors) {
  Attach(Ramp(1, 0));
  std::vector<float> group = Ramp(5, 0);
  absl::StatusOr<Attached> other = MakeCenter(1, "v")->Attach(group, SteadyTime() + kPatience);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition) << other.status();

  ASSERT_TRUE(MakeCenter(2)->Attach(group, SteadyTime() + kPatience).ok());
  EXPECT_EQ(RunExchange(*Clients(1)[0], Call(1), group, Into(group))[0].status.code(), absl::StatusCode::kAborted);

  servers_[0].Seal("job-1");
  servers_[1].Seal("job-1");
  EXPECT_EQ(RunExchange(*Clients(2)[0], Call(1), group, Into(group))[0].status.code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Center(), Ramp(1, 0));  // A sealed center can still be read.
}

// With a quorum of two and no grace window, two groups make a round as soon as both have come. It does not matter how
// long the first one has waited for the second.
TEST_P(RealServerTest, GroupsOfAQuorumMeetAtOnce) {
  constexpr int kLonelyTries = 6;
  constexpr absl::Duration kAtOnce = absl::Seconds(5);  // Long enough for a busy machine.
  std::atomic<int> tries{0}, met{0};
  const auto train = [&](uint32_t group) {
    CenterOptions center;
    center.sender = Sender(1);
    center.sender.set_group(group);
    center.job = QuorumOfTwo();
    center.layout.parameters.push_back({"w", {kValues}});
    center.partition = Partition(kValues);
    center.servers = {calls_[0].get(), calls_[1].get()};
    CenterClient attaching(center);
    std::vector<float> sent(kValues, 1.0f);
    ASSERT_TRUE(attaching.Attach(sent, SteadyTime() + kPatience).ok());
    ExchangeOptions options;
    options.sender = center.sender;
    options.partition = Partition(kValues);
    options.servers = center.servers;
    ExchangeClient client(std::move(options));
    const absl::Time give_up = SteadyTime() + 2 * kPatience;
    bool complete = false;
    for (uint64_t sequence = 1; met < 2 && SteadyTime() < give_up; ++sequence) {
      ExchangeCall call = Call(sequence, absl::Milliseconds(200));
      call.patience.skips_absent = call.patience.awaits_quorum = true;
      const auto outcomes = RunExchange(client, call, sent, [](const BlockAnswer&) {});
      const bool ok = outcomes[0].status.ok() && outcomes[1].status.ok();
      if (ok && !std::exchange(complete, true)) ++met;
      if (group == 0) ++tries;
      while ((client.Skips(servers_[0].address()) || client.Skips(servers_[1].address())) && SteadyTime() < give_up) {
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
  };
  std::thread first([&] { train(0); });
  const absl::Time give_up = SteadyTime() + 2 * kPatience;
  while (tries < kLonelyTries && SteadyTime() < give_up) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(met, 0);
  const absl::Time both_there = SteadyTime();
  train(1);
  EXPECT_EQ(met, 2);
  EXPECT_LT(SteadyTime() - both_there, kAtOnce);
  first.join();
}

INSTANTIATE_TEST_SUITE_P(Streams, RealServerTest,
                         ::testing::Values(DialOptions{true, true}, DialOptions{false, true},
                                           DialOptions{false, false}),
                         [](const auto& info) {
                           return info.param.local ? "Local" : info.param.direct ? "Direct" : "ByGrpc";
                         });

}  // namespace
}  // namespace hooke
