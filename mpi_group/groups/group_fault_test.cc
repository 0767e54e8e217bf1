// If one rank goes wrong, every rank of the group learns it soon, whichever way the values travel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Property;

constexpr uint64_t kValues = 3000;
constexpr int kRounds = 3;
constexpr int kWrongRound = 1;

enum class Where { kArena, kStaged, kMessages, kSockets, kTwoLevel, kTwoLevelArena };

bool InArena(Where where) { return where == Where::kArena || where == Where::kTwoLevelArena; }

// True if every rank is alone on its node, so that there are only messages.
bool ByMessages(Where where) { return where == Where::kMessages || where == Where::kSockets; }

// True if each node has two ranks, except for an odd last one: shared memory inside nodes, messages between them.
bool ByBoth(Where where) { return where == Where::kTwoLevel || where == Where::kTwoLevelArena; }

struct Error {
  std::string name;
  std::string wrong;  // The wrong rank's call: the text of its CallLabel without the number.
  std::string right;
};

const Error kErrors[] = {
    {"Size", "all-reduce (sum) of 2999 float32", "all-reduce (sum) of 3000 float32"},
    {"Empty", "all-reduce (sum) of 0 float32", "all-reduce (sum) of 3000 float32"},
    {"Type", "all-reduce (sum) of 3000 int32", "all-reduce (sum) of 3000 float32"},
    {"Op", "all-reduce (max) of 3000 float32", "all-reduce (sum) of 3000 float32"},
    {"Root", "broadcast of 10 float32 with root 1", "broadcast of 10 float32 with root 0"},
    {"Skip", "barrier", "all-reduce (sum) of 3000 float32"},
    {"Order", "broadcast of 10 float32 with root 0", "barrier"},
};

std::vector<std::unique_ptr<Group>> Groups(int n, Where where, absl::Duration deadline) {
  std::vector<std::unique_ptr<Group>> groups;
  for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(n)) {
    GroupOptions options;
    options.deadline = deadline;
    if (ByMessages(where)) options.node = absl::StrCat("node ", transport->rank());
    if (ByBoth(where)) options.node = absl::StrCat("node ", transport->rank() / 2);
    options.tuning.between_nodes =
        where == Where::kSockets ? Tuning::BetweenNodes::kSockets : Tuning::BetweenNodes::kMpi;
    groups.push_back(MakeTransportGroup(std::move(transport), options));
  }
  return groups;
}

// One rank's calls of a round. The rank goes wrong as `error` says, or does everything right if that is empty.
absl::Status Round(Group& group, absl::Span<float> values, const std::string& error) {
  TensorList sum(values);
  if (error == "Size") sum = TensorList(values.first(kValues - 1));
  if (error == "Empty") sum = TensorList(values.first(0));
  if (error == "Type") sum = TensorList(absl::MakeSpan(reinterpret_cast<int32_t*>(values.data()), kValues));
  absl::Status status;
  if (error != "Skip") status = group.AllReduce(sum, error == "Op" ? ReduceOp::kMax : ReduceOp::kSum);
  const TensorList ten(values.first(10));
  if (status.ok() && error == "Order") status = group.Broadcast(ten, 0);
  if (status.ok()) status = group.Barrier();
  if (status.ok() && error != "Order")
    status = group.Broadcast(ten, error == "Root" ? 1 : error == "NoSuchRoot" ? 7 : 0);
  return status;
}

// Runs some rounds and returns each rank's first error; `victim` goes wrong in one round.
std::vector<absl::Status> WhatIsTold(const std::vector<std::unique_ptr<Group>>& groups, Where where, int victim,
                                     const std::string& error) {
  std::vector<absl::Status> told(groups.size());
  RunRanks(static_cast<int>(groups.size()), [&](int rank) {
    std::vector<float> own(kValues);
    absl::StatusOr<absl::Span<float>> values = absl::MakeSpan(own);
    if (InArena(where)) values = AllocateSharedValues<float>(*groups[rank], kValues);
    told[rank] = values.status();
    for (int round = 0; round < kRounds && told[rank].ok(); ++round) {
      told[rank] = Round(*groups[rank], *values, rank == victim && round == kWrongRound ? error : "");
    }
  });
  return told;
}

// True if nothing in the differing calls shows the error before the deadline. Two ranks may wait for each other to
// receive, as two roots do, or to send. Or a rank waits in its node's memory for one that waits for a message.
bool TakesTheDeadline(Where where, const std::string& error) {
  if (error == "Root" || error == "Order") return ByMessages(where) || ByBoth(where);
  return ByBoth(where) && (error == "Skip" || error == "Empty");
}

class GroupErrorTest : public testing::TestWithParam<std::tuple<int, Where, Error>> {};

// Any call that differs on one rank is an error on every rank, which names the call of that rank and the call of the
// others. That takes until the deadline only if TakesTheDeadline().
TEST_P(GroupErrorTest, IsNamedOnEveryRank) {
  const auto& [n, where, error] = GetParam();
  const int victim = n - 1;
  const std::vector<std::unique_ptr<Group>> groups =
      Groups(n, where, TakesTheDeadline(where, error.name) ? absl::Seconds(2) : absl::Seconds(60));
  const absl::Time start = SteadyNow();
  const std::vector<absl::Status> told = WhatIsTold(groups, where, victim, error.name);
  EXPECT_LT(SteadyNow() - start, absl::Seconds(30));
  EXPECT_THAT(told, Each(Property(&absl::Status::code, absl::StatusCode::kInvalidArgument)));
  for (const absl::Status& status : told) {
    const std::string message = absl::StrReplaceAll(status.message(), {{" in shared memory", ""}});
    EXPECT_THAT(message, testing::ContainsRegex(absl::StrCat("rank ", victim, " in call [0-9]+: ")));
    EXPECT_THAT(message, HasSubstr(error.wrong));
    EXPECT_THAT(message, HasSubstr(error.right));
    EXPECT_THAT(message, HasSubstr("; all ranks must call the same operations in the same order"));
  }
}

std::string NameOf(Where where) {
  switch (where) {
    case Where::kArena:
      return "Arena";
    case Where::kStaged:
      return "Staged";
    case Where::kMessages:
      return "Messages";
    case Where::kSockets:
      return "Sockets";
    case Where::kTwoLevel:
      return "TwoLevel";
    case Where::kTwoLevelArena:
      return "TwoLevelArena";
  }
  return "Unknown";
}

std::string NameOfError(const testing::TestParamInfo<std::tuple<int, Where, Error>>& info) {
  const auto& [n, where, error] = info.param;
  return absl::StrCat(error.name, NameOf(where), "On", n);
}

INSTANTIATE_TEST_SUITE_P(All, GroupErrorTest,
                         testing::Combine(testing::Range(2, 9),
                                          testing::Values(Where::kArena, Where::kStaged, Where::kMessages,
                                                          Where::kSockets),
                                          testing::ValuesIn(kErrors)),
                         NameOfError);

// The rank that goes wrong shares its node with another, or is alone on it.
INSTANTIATE_TEST_SUITE_P(TwoLevels, GroupErrorTest,
                         testing::Combine(testing::Values(4, 5),
                                          testing::Values(Where::kTwoLevel, Where::kTwoLevelArena),
                                          testing::ValuesIn(kErrors)),
                         NameOfError);

// A rank whose call is invalid tells the others long before the deadline, even those that have not entered the call
// yet.
TEST(GroupRefusalTest, IsNamedOnEveryRank) {
  for (Where where :
       {Where::kArena, Where::kStaged, Where::kMessages, Where::kSockets, Where::kTwoLevel, Where::kTwoLevelArena}) {
    for (int n : {2, 3, 5}) {
      SCOPED_TRACE(absl::StrCat(NameOf(where), " on ", n));
      const absl::Time start = SteadyNow();
      const std::vector<absl::Status> told =
          WhatIsTold(Groups(n, where, absl::Seconds(60)), where, n - 1, "NoSuchRoot");
      EXPECT_LT(SteadyNow() - start, absl::Seconds(30));
      EXPECT_THAT(told, Each(Property(&absl::Status::code, absl::StatusCode::kInvalidArgument)));
      for (const absl::Status& status : told) {
        EXPECT_THAT(std::string(status.message()),
                    testing::ContainsRegex(absl::StrCat("rank ", n - 1, " (failed )?in call ")));
        EXPECT_THAT(std::string(status.message()),
                    testing::ContainsRegex("broadcast of 10 float32 (in shared memory )?with root 7"));
      }
    }
  }
}

class GroupAbsenceTest : public testing::TestWithParam<std::tuple<int, Where>> {};

// All others name a rank that stops calling. When it calls again, it gets the same error.
TEST_P(GroupAbsenceTest, MissingRankIsNamedOnEveryRank) {
  const auto& [n, where] = GetParam();
  const int victim = n / 2;
  const std::vector<std::unique_ptr<Group>> groups = Groups(n, where, absl::Seconds(2));
  std::vector<std::vector<float>> values(n, std::vector<float>(kValues));
  std::vector<absl::Status> told(n);
  const auto sum = [&](int rank) {
    return groups[rank]->AllReduce(TensorList(absl::MakeSpan(values[rank])), ReduceOp::kSum);
  };
  RunRanks(n, [&](int rank) { EXPECT_EQ(sum(rank), absl::OkStatus()); });
  RunRanks(n, [&](int rank) {
    if (rank != victim) told[rank] = sum(rank);
  });
  // If the others' data still lies in shared memory, this call succeeds and only the next one fails.
  for (int i = 0; i < 2 && told[victim].ok(); ++i) told[victim] = sum(victim);
  EXPECT_THAT(told, Each(Property(&absl::Status::code, absl::StatusCode::kDeadlineExceeded)));
  for (const absl::Status& status : told) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("waited until the deadline for rank ", victim, ", which did not come or got ",
                                       "stuck in call 2: all-reduce (sum) of 3000 float32")));
  }
}

// All others name a rank that is gone, long before the deadline.
TEST_P(GroupAbsenceTest, GoneRankIsNamedOnEveryRank) {
  const auto& [n, where] = GetParam();
  const int victim = n / 2;
  std::vector<std::unique_ptr<Group>> groups = Groups(n, where, absl::Seconds(60));
  std::vector<absl::Status> told(n, absl::UnavailableError("left the group"));
  RunRanks(n, [&](int rank) { EXPECT_EQ(groups[rank]->Barrier(), absl::OkStatus()); });
  const absl::Time start = SteadyNow();
  RunRanks(n, [&](int rank) {
    std::vector<float> values(kValues);
    if (rank == victim) {
      groups[rank].reset();
    } else {
      told[rank] = groups[rank]->AllReduce(TensorList(absl::MakeSpan(values)), ReduceOp::kSum);
    }
  });
  EXPECT_LT(SteadyNow() - start, absl::Seconds(30));
  EXPECT_THAT(told, Each(Property(&absl::Status::code, absl::StatusCode::kUnavailable)));
  for (int rank = 0; rank < n; ++rank) {
    if (rank == victim) continue;
    EXPECT_THAT(std::string(told[rank].message()),
                HasSubstr(absl::StrCat("waited for rank ", victim, ", which has left the group, in call 2: ")));
  }
}

// SetDeadline changes only the calls after it. In the first call a rank may be later than the new deadline allows. In a
// later call the others wait no longer than the new deadline.
TEST(GroupDeadlineTest, CountsFromWhenItIsSet) {
  for (Where where : {Where::kStaged, Where::kMessages}) {
    const std::vector<std::unique_ptr<Group>> groups = Groups(2, where, absl::Seconds(60));
    const absl::Duration later = absl::Milliseconds(50);
    RunRanks(2, [&](int rank) {
      if (rank == 1) absl::SleepFor(2 * later);
      EXPECT_EQ(groups[rank]->Barrier(), absl::OkStatus());
      groups[rank]->SetDeadline(later);
    });
    const absl::Time start = SteadyNow();
    EXPECT_THAT(std::string(groups[0]->Barrier().message()),
                AllOf(HasSubstr("(deadline 50ms)"), HasSubstr("waited until the deadline for rank 1")));
    EXPECT_LT(SteadyNow() - start, absl::Seconds(30));
  }
}

std::string NameOfAbsence(const testing::TestParamInfo<std::tuple<int, Where>>& info) {
  return absl::StrCat(NameOf(std::get<1>(info.param)), "On", std::get<0>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, GroupAbsenceTest,
                         testing::Combine(testing::Values(2, 3, 5, 8),
                                          testing::Values(Where::kStaged, Where::kMessages, Where::kSockets)),
                         NameOfAbsence);

// The missing rank is the second of its node, which sends no messages to other nodes, or the first, which does.
INSTANTIATE_TEST_SUITE_P(TwoLevels, GroupAbsenceTest,
                         testing::Combine(testing::Values(3, 4), testing::Values(Where::kTwoLevel)), NameOfAbsence);

}  // namespace
}  // namespace hooke
