#include "mpi_group/groups/transport_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/collectives/collective_cases.h"
#include "mpi_group/groups/group_nodes.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

GroupOptions WithDeadline(absl::Duration deadline) {
  GroupOptions options;
  options.deadline = deadline;
  return options;
}

class GroupTest : public testing::TestWithParam<std::tuple<int, CollectiveCase>> {};

// All operations of a group are right, in ordinary memory and in the arena.
TEST_P(GroupTest, AllOperations) {
  const int n = std::get<0>(GetParam());
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(n);
  RunRanks(n, [&](int rank) { CheckGroup(*groups[rank], std::get<1>(GetParam())); });
}

INSTANTIATE_TEST_SUITE_P(All, GroupTest,
                         testing::Combine(testing::Range(1, 9), testing::ValuesIn(AllCollectiveCases())),
                         [](const auto& info) {
                           return absl::StrCat(NameOf(std::get<1>(info.param)), "On", std::get<0>(info.param));
                         });

// Groups over several simulated nodes: rank r is on node nodes[r].
std::vector<std::unique_ptr<Group>> GroupsOn(const std::vector<std::string>& nodes, const GroupOptions& options = {}) {
  std::vector<std::unique_ptr<Group>> groups;
  for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(static_cast<int>(nodes.size()))) {
    GroupOptions own = options;
    own.node = nodes[groups.size()];
    groups.push_back(MakeTransportGroup(std::move(transport), own));
  }
  return groups;
}

struct NodesCase {
  std::string name;
  std::vector<std::string> nodes;
};

const std::vector<NodesCase>& AllNodesCases() {
  static const auto* const cases = new std::vector<NodesCase>{
      {"TwoOfOne", {"a", "b"}},
      {"TwoOfTwo", {"a", "a", "b", "b"}},
      {"ThreeAndOne", {"a", "a", "a", "b"}},
      {"Interleaved", {"a", "b", "b", "a", "b"}},
      {"ThreeNodes", {"a", "b", "b", "c", "c", "c"}},
      {"TwoOfFour", {"a", "a", "a", "a", "b", "b", "b", "b"}},
      {"TwoTwoAndThree", {"a", "b", "c", "c", "a", "b", "c"}},
  };
  return *cases;
}

class NodesTest : public testing::TestWithParam<std::tuple<NodesCase, CollectiveCase, Tuning::BetweenNodes>> {};

// All operations are right between nodes too: with equal and different numbers of ranks, whichever ranks share a node,
// with and without sockets.
TEST_P(NodesTest, AllOperations) {
  const std::vector<std::string>& nodes = std::get<0>(GetParam()).nodes;
  GroupOptions options;
  options.tuning.between_nodes = std::get<2>(GetParam());
  const std::vector<std::unique_ptr<Group>> groups = GroupsOn(nodes, options);
  RunRanks(static_cast<int>(nodes.size()), [&](int rank) { CheckGroup(*groups[rank], std::get<1>(GetParam())); });
}

INSTANTIATE_TEST_SUITE_P(All, NodesTest,
                         testing::Combine(testing::ValuesIn(AllNodesCases()),
                                          testing::Values(CollectiveCase{SizeClass::kOne, false},
                                                          CollectiveCase{SizeClass::kRanksPlusOne, true},
                                                          CollectiveCase{SizeClass::kOdd, true},
                                                          CollectiveCase{SizeClass::kLarge, false}),
                                          testing::Values(Tuning::BetweenNodes::kMpi, Tuning::BetweenNodes::kSockets)),
                         [](const auto& info) {
                           return absl::StrCat(
                               NameOf(std::get<1>(info.param)), "On", std::get<0>(info.param).name,
                               std::get<2>(info.param) == Tuning::BetweenNodes::kMpi ? "" : "BySockets");
                         });

// All operations are right in a group so large that not all pairs of ranks have sockets, also if a root has no
// counterpart on other nodes.
TEST(GroupOfSeveralNodesTest, ManyRanks) {
  std::vector<std::string> nodes;
  for (const auto& [name, ranks] : {std::pair<const char*, int>{"a", 14}, {"b", 3}, {"c", 12}, {"a", 4}, {"d", 2}}) {
    nodes.insert(nodes.end(), ranks, name);
  }
  ASSERT_GT(nodes.size(), kAllPairsRanks);
  GroupOptions options;
  options.tuning.between_nodes = Tuning::BetweenNodes::kSockets;
  for (const CollectiveCase& one : {CollectiveCase{SizeClass::kOne, false}, {SizeClass::kRanksPlusOne, true}}) {
    const std::vector<std::unique_ptr<Group>> groups = GroupsOn(nodes, options);
    RunRanks(static_cast<int>(nodes.size()), [&](int rank) { CheckGroup(*groups[rank], one); });
  }
}

// No rank leaves a barrier before all have entered it.
TEST(GroupOfSeveralNodesTest, BarrierWaitsForAll) {
  for (const NodesCase& nodes : AllNodesCases()) {
    const int ranks = static_cast<int>(nodes.nodes.size());
    const std::vector<std::unique_ptr<Group>> groups = GroupsOn(nodes.nodes);
    std::atomic<int> entered{0};
    RunRanks(ranks, [&](int rank) {
      for (int round = 1; round <= 200; ++round) {
        ++entered;
        ASSERT_EQ(groups[rank]->Barrier(), absl::OkStatus());
        ASSERT_GE(entered, round * ranks) << nodes.name;
      }
    });
  }
}

// A mean of float16 values is right although their sum is out of float16's range.
TEST(GroupOfSeveralNodesTest, MeansOfFloat16DoNotOverflow) {
  constexpr uint16_t kLargest = 0x7bff;  // 65504
  std::vector<std::vector<std::string>> layouts = {{"a", "a"}, {"a", "a", "a"}};
  for (const NodesCase& nodes : AllNodesCases()) layouts.push_back(nodes.nodes);
  for (const std::vector<std::string>& nodes : layouts) {
    const std::vector<std::unique_ptr<Group>> groups = GroupsOn(nodes);
    for (const uint64_t size : {1, 1000, 20'000, 300'000}) {
      RunRanks(static_cast<int>(nodes.size()), [&](int rank) {
        std::vector<Float16> values(size, Float16{kLargest});
        ASSERT_EQ(groups[rank]->AllReduce(TensorList(absl::MakeSpan(values)), ReduceOp::kMean), absl::OkStatus());
        for (const Float16& value : values) ASSERT_EQ(value.bits, kLargest) << nodes.size() << ", " << size;
      });
    }
  }
}

// LastAlgorithm tells a ring from the pairwise exchange that takes its place for 16-bit sums of more than two ranks.
TEST(GroupOfSeveralNodesTest, NamesWhatRan) {
  for (const int ranks : {2, 3}) {
    std::vector<std::string> nodes;
    nodes.reserve(ranks);
    for (int rank = 0; rank < ranks; ++rank) nodes.push_back(absl::StrCat("node ", rank));
    const std::vector<std::unique_ptr<Group>> groups = GroupsOn(nodes);
    RunRanks(ranks, [&](int rank) {
      std::vector<float> wide(300'000);
      ASSERT_EQ(groups[rank]->AllReduce(TensorList(absl::MakeSpan(wide)), ReduceOp::kSum), absl::OkStatus());
      EXPECT_EQ(groups[rank]->LastAlgorithm(), "ring");
      std::vector<Float16> narrow(300'000);
      ASSERT_EQ(groups[rank]->AllReduce(TensorList(absl::MakeSpan(narrow)), ReduceOp::kSum), absl::OkStatus());
      EXPECT_EQ(groups[rank]->LastAlgorithm(), ranks == 2 ? "ring" : "pairwise");
    });
  }
}

// Results are right whichever algorithm a tuning asks for. Each algorithm is tried with every operation that it
// implements, in small chunks.
TEST(GroupTuningTest, EveryAlgorithm) {
  for (const std::vector<std::string>& nodes :
       {std::vector<std::string>{"a", "a", "a"}, {"a", "a", "b"}, {"a", "a", "b", "b", "b"}}) {
    for (Algorithm algorithm : kAllAlgorithms) {
      GroupOptions options;
      for (Operation operation : kAllOperations) {
        if (algorithm == Algorithm::kNothing || !Does(algorithm, operation)) continue;
        TuningRule rule;
        rule.operation = operation;
        rule.algorithm = algorithm;
        rule.chunk_bytes = 1024;
        options.tuning.rules.push_back(rule);
      }
      options.tuning.slot_bytes = 4096;
      SCOPED_TRACE(NameOf(algorithm));
      const std::vector<std::unique_ptr<Group>> groups = GroupsOn(nodes, options);
      RunRanks(static_cast<int>(nodes.size()), [&](int rank) { CheckGroup(*groups[rank], {SizeClass::kOdd, true}); });
    }
  }
}

class RingBetweenNodesTest : public testing::TestWithParam<NodesCase> {};

// A ring between nodes that runs while each node reduces and shares its chunks gives right results. That holds for many
// chunks and few, for nodes of one rank beside others, and for pieces that end anywhere.
TEST_P(RingBetweenNodesTest, AllReduce) {
  GroupOptions options;
  for (Algorithm algorithm : {Algorithm::kTwoLevel, Algorithm::kRing}) {
    TuningRule rule;
    rule.operation = Operation::kAllReduce;
    rule.algorithm = algorithm;
    rule.chunk_bytes = 1024;
    options.tuning.rules.push_back(rule);
  }
  for (SizeClass size : {SizeClass::kRanksMinusOne, SizeClass::kOdd, SizeClass::kLarge}) {
    for (bool pieces : {false, true}) {
      const std::vector<std::unique_ptr<Group>> groups = GroupsOn(GetParam().nodes, options);
      RunRanks(static_cast<int>(groups.size()), [&](int rank) { CheckGroupAllReduce(*groups[rank], {size, pieces}); });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RingBetweenNodesTest, testing::ValuesIn(AllNodesCases()),
                         [](const auto& info) { return info.param.name; });

// Ranks with different tunings choose the same algorithm: all use rank 0's tuning.
TEST(GroupTuningTest, RankZerosCounts) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    GroupOptions options;
    options.node = "node";
    TuningRule rule;
    rule.algorithm = rank == 0 ? Algorithm::kRing : Algorithm::kReference;
    options.tuning.rules = {rule};
    options.tuning.slot_bytes = rank == 0 ? 8192 : 4096;
    std::vector<char> memory;
    const absl::StatusOr<std::unique_ptr<GroupNodes>> nodes =
        GroupNodes::Gather(*transports[rank], options, memory, SteadyNow() + absl::Seconds(20));
    ASSERT_EQ(nodes.status(), absl::OkStatus());
    EXPECT_EQ((*nodes)->tuning().rules[0].algorithm, Algorithm::kRing);
    EXPECT_EQ((*nodes)->tuning().slot_bytes, 8192);
    EXPECT_EQ((*nodes)->topology().nodes, 1);
    EXPECT_TRUE((*nodes)->topology().shared_memory);
  });
}

// The error at the deadline names a rank that never comes and the operation. From then on the group refuses every call.
TEST(GroupFaultTest, MissingRankIsNamedAndTheGroupStaysFailed) {
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2, WithDeadline(absl::Milliseconds(100)));
  std::vector<float> values(1000);
  const absl::Time start = SteadyNow();
  const absl::Status status = groups[0]->AllReduce(TensorList(absl::MakeSpan(values)), ReduceOp::kSum);
  EXPECT_LT(SteadyNow() - start, absl::Seconds(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("all-reduce of 1000 values on rank 0 of 2 (deadline 100ms): waited until the deadline for rank 1"));
  EXPECT_EQ(groups[0]->Barrier(), status);
  EXPECT_EQ(groups[0]->AllocateShared(1).status(), status);
}

// A rank that is gone is reported as UNAVAILABLE long before the deadline, by collectives over messages and by those in
// the arena.
TEST(GroupFaultTest, GoneRankIsReportedAtOnce) {
  for (bool shared : {false, true}) {
    std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2, WithDeadline(absl::Seconds(60)));
    RunRanks(2, [&](int rank) {
      const absl::StatusOr<absl::Span<float>> arena = AllocateSharedValues<float>(*groups[rank], 100);
      ASSERT_EQ(arena.status(), absl::OkStatus());
      if (rank == 1) {
        groups[1].reset();
        return;
      }
      std::vector<float> own(100);
      const absl::Status status =
          groups[0]->AllReduce(TensorList(shared ? *arena : absl::MakeSpan(own)), ReduceOp::kSum);
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1, which has left the group"));
    });
  }
}

// Ranks whose calls have different sizes all get an error before their deadline. In the arena all errors say what is
// wrong.
TEST(GroupFaultTest, DifferentCallsAreAnErrorOnEveryRank) {
  for (bool shared : {false, true}) {
    const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2, WithDeadline(absl::Seconds(60)));
    std::atomic<int> explained{0};
    RunRanks(2, [&](int rank) {
      const absl::StatusOr<absl::Span<float>> arena = AllocateSharedValues<float>(*groups[rank], 100);
      ASSERT_EQ(arena.status(), absl::OkStatus());
      std::vector<float> own(100);
      const absl::Span<float> values = shared ? *arena : absl::MakeSpan(own);
      const absl::Status status = groups[rank]->AllReduce(TensorList(values.first(98 + rank * 2)), ReduceOp::kSum);
      EXPECT_THAT(status.code(), AnyOf(absl::StatusCode::kInvalidArgument, absl::StatusCode::kInternal,
                                       absl::StatusCode::kUnavailable));
      if (absl::StrContains(status.message(), "all ranks must call the same operations")) ++explained;
    });
    EXPECT_GE(explained, shared ? 2 : 1);
  }
}

// Invalid arguments are refused with an error that says why. They end the group, because other ranks may be in that
// call.
TEST(GroupFaultTest, BadArgumentsAreRefused) {
  std::vector<float> values(10);
  const TensorList list(absl::MakeSpan(values));
  const struct {
    std::function<absl::Status(Group&)> call;
    const char* said;
  } kCases[] = {
      {[&](Group& group) { return group.Broadcast(list, 1); }, "root 1: the group has 1 ranks"},
      {[&](Group& group) { return group.Broadcast(list, -1); }, "root -1: the group has 1 ranks"},
      {[&](Group& group) { return group.Reduce(list, ReduceOp::kSum, 1); }, "root 1: the group has 1 ranks"},
      {[&](Group& group) { return group.AllGather(list, {}); }, "a call in parts takes one part per rank: 1, not 0"},
      {[&](Group& group) {
         return group.ReduceScatter(list, {{0, 11}}, ReduceOp::kSum);
       },
       "part 0 is [0, 11); it must begin at or after 0 and end at or before 10"},
      {[&](Group& group) {
         return group.AllGather(list, {{5, 4}});
       },
       "part 0 is [5, 4)"},
  };
  for (const auto& one : kCases) {
    const std::unique_ptr<Group> group = std::move(MakeInProcessGroups(1)[0]);
    const absl::Status refused = one.call(*group);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr(one.said));
    EXPECT_EQ(group->Barrier(), refused);
  }
}

}  // namespace
}  // namespace hooke
