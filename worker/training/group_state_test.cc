#include "worker/training/group_state.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/exchange/server_calls.h"
#include "worker/report/reporter.h"

namespace hooke {
namespace {

constexpr int kRanks = 3;

// A group of three ranks with two servers. Its vector has seven values, so that the ranks' parts differ.
class GroupStateTest : public ::testing::Test {
 protected:
  using Body = std::function<void(GroupState& state, Group& group)>;

  // Runs `body` on all ranks of a start of the group.
  void Run(uint32_t incarnation, bool with_values, const Body& body) {
    const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(kRanks);
    RunRanks(kRanks, [&](int rank) {
      std::vector<std::unique_ptr<ServerCalls>> calls;
      std::vector<ServerCalls*> servers;
      for (const auto& server : servers_) {
        calls.push_back(server->Dial());
        servers.push_back(calls.back().get());
      }
      GroupStateOptions options;
      options.sender.set_job_id("job-1");
      options.sender.set_rank(static_cast<uint32_t>(rank));
      options.sender.set_incarnation(incarnation);
      options.with_values = with_values;
      options.interval = absl::Seconds(10);
      options.timeout = absl::Seconds(3);
      options.clock = [this, looks = 0]() mutable { return now_ + per_look_ * looks++; };
      Reporter reporter{ReporterOptions()};
      GroupState state(options, groups[rank].get(), servers, &reporter);
      body(state, *groups[rank]);
    });
  }

  // Averages the statistics over the ranks, as a step's collective does. Returns the means.
  static std::vector<float> Step(GroupState& state, Group& group) {
    std::vector<float> statistics(kGroupStateStatistics);
    state.Propose(absl::MakeSpan(statistics));
    EXPECT_TRUE(group.AllReduce(TensorList(absl::MakeSpan(statistics)), ReduceOp::kMean).ok());
    state.Learn(statistics);
    return statistics;
  }

  static void Keep(GroupState& state, Group& group, uint64_t step) {
    std::vector<float> vector(7, static_cast<float>(step));
    state.Take(step, vector);
    EXPECT_TRUE(state.due());
    EXPECT_TRUE(state.Keep("moments", absl::StrCat("own ", group.rank(), " at ", step)).ok());
    EXPECT_FALSE(state.due());
  }

  std::optional<uint64_t> Restore(uint32_t incarnation, bool with_values, float* value = nullptr,
                                  uint64_t center_step = 0) {
    std::optional<uint64_t> found;
    Run(incarnation, with_values, [&](GroupState& state, Group& group) {
      std::vector<float> vector(7, -1);
      const auto step = state.Restore(absl::MakeSpan(vector), center_step);
      ASSERT_TRUE(step.ok());
      for (const float each : vector) EXPECT_EQ(each, vector[0]);
      if (step->has_value()) {
        EXPECT_EQ(state.restored()->own, absl::StrCat("own ", group.rank(), " at ", **step));
        EXPECT_EQ(state.restored()->optimizer, "moments");
      }
      if (group.rank() != 0) return;
      found = *step;
      if (value != nullptr) *value = vector[0];
    });
    return found;
  }

  const std::vector<std::unique_ptr<InMemoryServer>> servers_ = TwoInMemoryServers();
  absl::Time now_ = absl::UnixEpoch();
  absl::Duration per_look_;  // Each reading of a rank's clock moves that clock on by this much.
};

// All ranks get back the newest state. Together their parts of the values give the whole vector.
TEST_F(GroupStateTest, Restores) {
  EXPECT_EQ(Restore(2, true), std::nullopt);
  Run(1, true, [](GroupState& state, Group& group) {
    for (uint64_t step = 5; step <= 15; step += 5) {
      Keep(state, group, step);
      Step(state, group);
    }
  });
  float value = 0;
  EXPECT_EQ(Restore(2, true, &value), 15u);
  EXPECT_EQ(value, 15);
}

// A state whose values are far behind the center is stale, because the servers took no newer one. Its values are not
// restored, since training would be lost. The rest of the state is restored.
TEST_F(GroupStateTest, LeavesStaleValues) {
  Run(1, true, [](GroupState& state, Group& group) {
    Keep(state, group, 20);
    Step(state, group);
  });
  float value = 0;
  EXPECT_EQ(Restore(2, true, &value, 10020), 20u);
  EXPECT_EQ(value, 20);
  EXPECT_EQ(Restore(2, true, &value, 10021), 20u);
  EXPECT_EQ(value, -1);
  Run(2, true, [](GroupState& state, Group& group) {
    for (const uint64_t step : {25, 30}) {
      Keep(state, group, step);
      Step(state, group);
    }
  });
  EXPECT_EQ(Restore(3, true, &value, 1030), 30u);
  EXPECT_EQ(value, 30);
  EXPECT_EQ(Restore(3, true, &value, 1031), 30u);
  EXPECT_EQ(value, -1);
}

// If one rank has failed to keep the newest states, the group goes back to the newest state that all ranks have.
TEST_F(GroupStateTest, GoesBackToACommonStep) {
  Run(1, false, [this](GroupState& state, Group& group) {
    Keep(state, group, 5);
    Step(state, group);
    if (group.rank() == 1) servers_[1]->SetKeepError(absl::ResourceExhaustedError("the disk is full"));
    EXPECT_TRUE(group.Barrier().ok());
    for (uint64_t step = 10; step <= 20; step += 5) {
      Keep(state, group, step);
      Step(state, group);
    }
  });
  EXPECT_EQ(Restore(2, false), 5u);
}

// If a rank died before it kept any state, the group restores none, although other ranks have states.
TEST_F(GroupStateTest, NeedsTheStatesOfAllRanks) {
  Run(1, false, [](GroupState& state, Group& group) {
    if (group.rank() != 2) Keep(state, group, 5);
  });
  EXPECT_EQ(Restore(2, false), std::nullopt);
}

// A state of a later start is newer than a state of an earlier start, even if that has more steps. The state with which
// a start goes on stays on the servers until all ranks have kept the next one.
TEST_F(GroupStateTest, LaterStartsAreNewer) {
  Run(1, false, [](GroupState& state, Group& group) { Keep(state, group, 50); });
  Run(2, false, [](GroupState& state, Group& group) {
    std::vector<float> vector(7);
    EXPECT_EQ(state.Restore(absl::MakeSpan(vector), 0).value(), 50u);
    if (group.rank() != 1) Keep(state, group, 40);
  });
  EXPECT_EQ(Restore(3, false), 50u);
  Run(3, false, [](GroupState& state, Group& group) { Keep(state, group, 40); });
  EXPECT_EQ(Restore(4, false), 40u);
}

// A state that cannot be read counts as missing.
TEST_F(GroupStateTest, DamagedStates) {
  Run(1, false, [](GroupState& state, Group& group) { Keep(state, group, 5); });
  servers_[1]->DamageStates();
  EXPECT_EQ(Restore(2, false), std::nullopt);
}

// If a server does not answer, Restore fails, because that server may have the state.
TEST_F(GroupStateTest, AServerThatIsAway) {
  Run(1, false, [](GroupState& state, Group& group) { Keep(state, group, 5); });
  servers_[0]->SetReachable(false);
  Run(2, false, [](GroupState& state, Group& group) {
    group.SetDeadline(absl::Seconds(2));
    std::vector<float> vector(7);
    EXPECT_FALSE(state.Restore(absl::MakeSpan(vector), 0).ok());
  });
  servers_[0]->SetReachable(true);
  EXPECT_EQ(Restore(3, false), 5u);
}

// A server that has started anew since the attach does not know this start. The next start attaches again, so the error
// must not fail the job.
TEST_F(GroupStateTest, AServerThatHasForgottenTheStart) {
  servers_[0]->SetFetchError(absl::NotFoundError("start 2 of group 0 has not attached: attach to it first"));
  Run(2, false, [](GroupState& state, Group& group) {
    group.SetDeadline(absl::Seconds(2));
    std::vector<float> vector(7);
    const absl::Status status = state.Restore(absl::MakeSpan(vector), 0).status();
    if (group.rank() == 0) {
      EXPECT_EQ(status, absl::UnavailableError("the group's own state cannot be looked for: start 2 of group 0 has not "
                                               "attached: attach to it first"));
    }
  });
}

// If a later start has replaced this one, Keep returns ABORTED.
TEST_F(GroupStateTest, ReplacedStart) {
  for (const auto& server : servers_) server->SetKeepError(absl::AbortedError("replaced"));
  Run(1, false, [](GroupState& state, Group&) {
    state.Take(5, std::vector<float>(7));
    EXPECT_TRUE(absl::IsAborted(state.Keep("", "")));
  });
}

// Rank 0's clock decides for all ranks. A state that is not kept before the next step's collective is not due any more.
TEST_F(GroupStateTest, IsWantedByTime) {
  Run(1, false, [this](GroupState& state, Group& group) {
    Step(state, group);
    EXPECT_FALSE(state.wanted());
    EXPECT_TRUE(group.Barrier().ok());
    if (group.rank() == 0) now_ += absl::Seconds(10);
    EXPECT_TRUE(group.Barrier().ok());
    Step(state, group);
    EXPECT_TRUE(state.wanted());
    state.Take(5, std::vector<float>(7));
    EXPECT_TRUE(state.due());
    EXPECT_FALSE(state.wanted());
    Step(state, group);
    EXPECT_FALSE(state.due());
    EXPECT_FALSE(state.wanted());
  });
}

// A server that does not answer once does not lose a state: the rank sends it again.
TEST_F(GroupStateTest, AServerThatIsAwayForAMoment) {
  for (const auto& server : servers_) server->FailKeeps(1);
  Run(1, true, [](GroupState& state, Group& group) {
    Keep(state, group, 0);
    EXPECT_EQ(Step(state, group)[1], 0);
  });
  EXPECT_EQ(Restore(2, true), 0u);
}

// Each state that a server does not take may stop training for the timeout. So a server that stays away is soon asked
// less often, but never more than 16 intervals later.
TEST_F(GroupStateTest, AServerThatStaysAwayIsAskedLessOften) {
  servers_[1]->SetKeepError(absl::ResourceExhaustedError("the disk is full"));
  Run(1, false, [this](GroupState& state, Group& group) {
    uint64_t step = 0;
    for (const int pause : {10, 10, 20, 40, 80, 160, 160}) {
      for (const absl::Duration time : {absl::Seconds(pause) - absl::Seconds(1), absl::Seconds(1)}) {
        Step(state, group);
        EXPECT_FALSE(state.wanted()) << pause;
        EXPECT_TRUE(group.Barrier().ok());
        if (group.rank() == 0) now_ += time;
        EXPECT_TRUE(group.Barrier().ok());
      }
      Step(state, group);
      EXPECT_TRUE(state.wanted()) << pause;
      Keep(state, group, ++step);
    }
  });
}

// The time of a failed attempt does not count as cost, so it does not delay later states. Before all ranks have a
// state, cost delays nothing.
TEST_F(GroupStateTest, FailuresDelayNoState) {
  per_look_ = absl::Seconds(1);
  servers_[1]->SetKeepError(absl::ResourceExhaustedError("the disk is full"));
  Run(1, false, [this](GroupState& state, Group& group) {
    auto pass = [&](absl::Duration time) {
      EXPECT_TRUE(group.Barrier().ok());
      if (group.rank() == 0) now_ += time;
      EXPECT_TRUE(group.Barrier().ok());
    };
    Keep(state, group, 5);  // Ranks 0 and 2 have a cost of 2 seconds, rank 1 has failed.
    EXPECT_FLOAT_EQ(Step(state, group)[2], 4.0f / 3);
    pass(absl::Seconds(10));
    Step(state, group);
    EXPECT_TRUE(state.wanted()) << "no state is complete";
    if (group.rank() == 1) servers_[1]->SetKeepError(absl::OkStatus());
    EXPECT_TRUE(group.Barrier().ok());
    Keep(state, group, 10);
    EXPECT_FLOAT_EQ(Step(state, group)[2], 2);
    pass(absl::Seconds(10));
    Step(state, group);
    EXPECT_FALSE(state.wanted()) << "fifty times the cost";
  });
}

// If the answers to the first state were lost, all ranks have it, and none knows that. It stays on the servers until
// all ranks have kept another one.
TEST_F(GroupStateTest, KeepsAFirstStateWhoseAnswersWereLost) {
  Run(1, false, [](GroupState& state, Group& group) {
    Keep(state, group, 5);
    state.Learn({0, 1, 0});
    if (group.rank() != 1) Keep(state, group, 10);
  });
  EXPECT_EQ(Restore(2, false), 5u);
}

// DecodeState returns what EncodeState was given. It refuses the bytes of a state if they are cut at any length, or if
// another byte follows them.
TEST(KeptState, Encoding) {
  const std::string bytes = EncodeState({{1.5f, -2.0f}, "moments", "own"});
  const absl::StatusOr<KeptState> state = DecodeState(bytes);
  ASSERT_TRUE(state.ok());
  EXPECT_THAT(state->values, testing::ElementsAre(1.5f, -2.0f));
  EXPECT_EQ(state->optimizer, "moments");
  EXPECT_EQ(state->own, "own");
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(DecodeState(bytes.substr(0, length)).status().code(), absl::StatusCode::kDataLoss) << length;
  }
  EXPECT_EQ(DecodeState(bytes + "x").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace hooke
