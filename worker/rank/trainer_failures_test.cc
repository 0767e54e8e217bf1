// Tests a group when servers, ranks or numbers fail. It trains on, starts again from the center, or ends with an error
// that explains the failure.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/sharding.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/rank/trainer.h"
#include "worker/rank/trainer_run.h"
#include "worker/training/rank_zero.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using TrainerFailuresTest = TrainerRun;

// A server that has failed an exchange must answer the next one within a tenth of this, and one that cannot be reached
// is given up after a fiftieth. A loaded machine may hold a thread up for some tenths of a second.
constexpr absl::Duration kPatient = absl::Seconds(20);

// A group that was started again goes on at the step of its last exchange, from the center and not from its initial
// values. One notice says that its optimizer begins anew.
TEST_F(TrainerFailuresTest, ResumesFromTheCenter) {
  options_.epochs = 1;
  ASSERT_EQ(*Run({.ranks = 2, .seed = 40}).steps[0], 12u);
  const float center = servers_[0]->center()[0];
  options_.epochs = 2;
  std::vector<uint64_t> first;
  GroupResult again = Run({.ranks = 2, .incarnation = 2, .seed = 1000, .before_step = [&](uint64_t step) {
                             if (step == 0) first.push_back(1);
                           }});
  EXPECT_EQ(*again.steps[0], 24u);
  EXPECT_EQ(again.progress.exchanges(), 4u);  // After steps 15, 18, 21 and 24.
  EXPECT_LT(again.vectors[0][0], center + 5);
  EXPECT_THAT(first, SizeIs(1));
  const std::vector<v1::RankEvent> notices = record_.Of(v1::RankEvent::kNotice);
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_EQ(notices[0].notice().text(),
            "group 0 was started again and goes on from step 12 with its optimizer's momentum at zero: no kept "
            "state was found that all its ranks have");
  // A third start has nothing left to do and ends at once.
  GroupResult done = Run({.ranks = 2, .incarnation = 3});
  EXPECT_EQ(*done.steps[0], 24u);
  EXPECT_EQ(done.progress.exchanges(), 0u);
  EXPECT_THAT(record_.Of(v1::RankEvent::kNotice), SizeIs(1));  // The notice of the second start.
}

// If the optimizer has no state, a restart loses nothing. So there is no notice.
TEST_F(TrainerFailuresTest, ResumesInSilenceWithoutOptimizerState) {
  options_.epochs = 1;
  options_.training.optimizer->momentum = 0;
  ASSERT_EQ(*Run({.ranks = 2}).steps[0], 12u);
  options_.epochs = 2;
  EXPECT_EQ(*Run({.ranks = 2, .incarnation = 2}).steps[0], 24u);
  EXPECT_THAT(record_.Of(v1::RankEvent::kNotice), SizeIs(0));
}

// A server that goes away does not stop training. There is one notice when it goes and one when it is back, and
// exchanges work again.
TEST_F(TrainerFailuresTest, TrainsOnWithoutAServer) {
  options_.training.exchange_timeout = kPatient;
  GroupToTrain run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 4) servers_[0]->SetReachable(false);
    if (step == 10) servers_[0]->SetReachable(true);
  };
  run.awaits_servers_at = 11;
  GroupResult result = Run(run);
  EXPECT_EQ(*result.steps[0], 24u);
  EXPECT_EQ(*result.steps[1], 24u);
  ExpectSame(result.vectors);
  EXPECT_EQ(result.progress.exchange_failures(), 2u);
  std::vector<v1::RankEvent> notices = record_.Of(v1::RankEvent::kNotice);
  ASSERT_THAT(notices, SizeIs(2));  // Only rank 0 exchanges with the first server.
  EXPECT_THAT(notices[0].notice().text(), HasSubstr("server first:1 has not answered since 20"));
  EXPECT_THAT(notices[0].notice().text(), HasSubstr("; at step 6; training goes on"));
  EXPECT_THAT(notices[1].notice().text(), HasSubstr("server first:1 answers again at step 12; it had not since 20"));
}

// Only rank 1 exchanges with the second server, which is away for a while. The job's status comes from rank 0's
// reports, so rank 0 also counts what rank 1 missed.
TEST_F(TrainerFailuresTest, CountsWhatAnotherRankMissed) {
  options_.training.exchange_timeout = kPatient;
  GroupToTrain run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 4) servers_[1]->SetReachable(false);
    if (step == 10) servers_[1]->SetReachable(true);
  };
  run.awaits_servers_at = 11;
  GroupResult result = Run(run);
  EXPECT_EQ(*result.steps[0], 24u);
  ExpectSame(result.vectors);
  EXPECT_EQ(result.progress.exchanges(), 8u);
  EXPECT_EQ(result.progress.exchange_failures(), 2u);
}

// A server comes back without its data. Within an exchange it gets its shard again from the group.
TEST_F(TrainerFailuresTest, RecreatesALostCenter) {
  GroupToTrain run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 7) servers_[1]->Forget();
  };
  GroupResult result = Run(run);
  EXPECT_EQ(*result.steps[0], 24u);
  EXPECT_EQ(result.progress.exchange_failures(), 0u);
  EXPECT_FALSE(servers_[1]->center().empty());
}

// Attaching may take longer than the limit of a collective. The other ranks wait for rank 0 all the same.
TEST_F(TrainerFailuresTest, AttachesLongerThanACollective) {
  options_.training.collective_timeout = absl::Seconds(2);
  servers_[0]->MakeWait(12);  // Rank 0 asks every quarter of a second.
  const absl::Time start = SteadyTime();
  GroupResult result = Run({.ranks = 3});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(16)));
  EXPECT_GT(SteadyTime() - start, options_.training.collective_timeout);
  ExpectSame(result.vectors);
}

// If a group cannot attach, every rank returns rank 0's error.
TEST_F(TrainerFailuresTest, AttachFailureReachesAllRanks) {
  servers_[1]->SetReachable(false);
  options_.training.attach_timeout = absl::Milliseconds(400);
  GroupResult result = Run({.ranks = 3});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("second:2"));
  }
}

// If a server misses the last exchange, the group fails on all ranks. The next start of the group goes on from the
// exchange before, and ends with all servers.
TEST_F(TrainerFailuresTest, LastExchangeNeedsEveryServer) {
  options_.training.collective_timeout = absl::Seconds(6);
  options_.training.exchange_timeout = absl::Seconds(6);
  GroupToTrain run;
  run.ranks = 3;
  run.seed = 40;
  run.before_step = [this](uint64_t step) {
    if (step == 15) servers_[0]->SetReachable(false);
  };
  GroupResult result = Run(run);
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kUnavailable) << steps.status();
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("first:1"));
  }
  EXPECT_EQ(result.progress.exchange_failures(), 1u);

  servers_[0]->SetReachable(true);
  result = Run({.ranks = 3, .incarnation = 2, .seed = 40});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(16)));
  EXPECT_EQ(result.progress.exchanges(), 1u);  // After step 16. The group went on from step 15.
  EXPECT_EQ(servers_[0]->applied(), 6 * 2);
  EXPECT_NEAR(servers_[0]->center()[0], result.vectors[0][0], 3);
}

// When the group has ended, the result of the last exchange is on every server's disk. That holds even if an earlier
// incarnation made that exchange and could not save.
TEST_F(TrainerFailuresTest, EndsWithTheCenterOnDisk) {
  options_.training.attach_timeout = absl::Seconds(1);
  servers_[1]->SetSaveError(absl::InternalError("input/output error"));
  GroupResult result = Run({.ranks = 2, .seed = 40});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kUnavailable) << steps.status();
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("input/output error"));
  }
  servers_[1]->SetSaveError(absl::OkStatus());
  result = Run({.ranks = 2, .incarnation = 2});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_EQ(result.progress.exchanges(), 0u);
  for (auto& server : servers_) {
    const std::vector<float> center = server->center();
    server->Restart();
    EXPECT_EQ(server->center(), center);
  }
}

// A server restarts after the last exchange and has lost it, though it then saves without an error. The group fails,
// and its next start makes the lost exchange again.
TEST_F(TrainerFailuresTest, SavingWhatWasLostIsNoSuccess) {
  servers_[1]->RestartBeforeSave();
  GroupResult result = Run({.ranks = 2, .seed = 40});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kUnavailable) << steps.status();
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("has lost the exchange at step 24"));
  }
  result = Run({.ranks = 2, .incarnation = 2, .seed = 40});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_EQ(result.progress.exchanges(), 8u);
}

// If the server of a shard is away, an evaluation does not read the center, because that would delay training.
TEST_F(TrainerFailuresTest, AnEvaluationDoesNotWaitForAServerThatIsAway) {
  options_.evaluate_every = 1;
  options_.training.exchange_timeout = kPatient;
  GroupToTrain run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 4) servers_[0]->SetReachable(false);
    if (step == 14) servers_[0]->SetReachable(true);
  };
  run.awaits_servers_at = 15;
  GroupResult result = Run(run);
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  std::vector<v1::RankEvent> notices = record_.Of(v1::RankEvent::kNotice);
  // The notice of the evaluation comes between those that the server is away and that it is back.
  ASSERT_THAT(notices, SizeIs(3));
  EXPECT_THAT(notices[1].notice().text(), HasSubstr("the center was not evaluated at step 12: a server is away"));
}

// If a server has lost its disk, an evaluation fails, but not the job: the next exchange gives the server its shard
// again.
TEST_F(TrainerFailuresTest, EvaluationOutlivesALostShard) {
  options_.evaluate_every = 1;
  options_.training.rhythm.interval = 5;
  options_.training.exchange_timeout = absl::Seconds(3);
  GroupToTrain run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 11) servers_[1]->Forget();
  };
  GroupResult result = Run(run);
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_FALSE(servers_[1]->center().empty());
  EXPECT_THAT(record_.Of(v1::RankEvent::kEvaluated), SizeIs(0));
  std::vector<v1::RankEvent> notices = record_.Of(v1::RankEvent::kNotice);
  ASSERT_THAT(notices, SizeIs(2));  // Each rank has one notice.
  EXPECT_THAT(notices[0].notice().text(), HasSubstr("the center was not evaluated at step 12: "));
}

// Rank 0 pauses between two attempts to reach servers. It gives up at the call's timeout.
TEST(PullInGroupTest, PausesBetweenAttempts) {
  InMemoryServer server("first:1");
  server.SetReachable(false);
  std::unique_ptr<ServerCalls> calls = server.Dial();
  CenterOptions center;
  center.layout.parameters.push_back({"w", {2}});
  center.partition = Partition(2);
  center.servers = {calls.get()};
  std::unique_ptr<Group> group = std::move(MakeInProcessGroups(1)[0]);
  absl::Time now = absl::UnixEpoch();
  std::vector<absl::Duration> pauses;
  RankZeroCall call;
  call.collective_timeout = absl::Seconds(20);
  call.timeout = absl::Seconds(5);
  call.clock = [&now] { return now; };
  call.sleep = [&](absl::Duration pause) {
    pauses.push_back(pause);
    now += pause;
  };
  std::vector<float> vector(2);
  CenterClient client(center);
  absl::Status status = PullInGroup(*group, client, call, absl::MakeSpan(vector));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(pauses, SizeIs(19));  // A twentieth pause would end at the timeout.
  EXPECT_THAT(pauses, Each(absl::Milliseconds(250)));
}

// A server's final error ends the rank with its code.
TEST_F(TrainerFailuresTest, ReplacedIncarnationEnds) {
  GroupToTrain run;
  run.before_step = [this](uint64_t step) {
    if (step == 4) servers_[0]->SetError(absl::AbortedError("incarnation 1 has been replaced"));
  };
  GroupResult result = Run(run);
  EXPECT_EQ(result.steps[0].status().code(), absl::StatusCode::kAborted);
}

// If the loss is not a number, training ends on all ranks. The error names the step and what to do.
TEST_F(TrainerFailuresTest, DivergenceIsNamed) {
  with_servers_ = false;
  options_.schedule.learning_rate = 1e20;
  GroupResult result = Run({.ranks = 2});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("try a smaller learning rate"));
  }
}

}  // namespace
}  // namespace hooke
