// Runs the cases of collectives/collectives_test.cc and transport_group_test.cc between processes, under mpirun with
// several numbers of ranks.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/collectives/barrier.h"
#include "mpi_group/collectives/collective_cases.h"
#include "mpi_group/collectives/ring.h"
#include "mpi_group/collectives/transport_collectives.h"
#include "mpi_group/groups/mpi_group.h"
#include "mpi_group/mpi/mpi_test_session.h"
#include "mpi_group/mpi/mpi_transport.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

std::unique_ptr<Transport> NewTransport(uint64_t message_bytes_max) {
  MpiTransportOptions options;
  options.deadline = SteadyNow() + absl::Seconds(20);
  options.message_bytes_max = message_bytes_max;
  absl::StatusOr<std::unique_ptr<Transport>> transport = MakeMpiTransport(TestSession(), options);
  EXPECT_EQ(transport.status(), absl::OkStatus());
  return transport.ok() ? *std::move(transport) : nullptr;
}

class MpiCollectivesTest : public testing::TestWithParam<NamedCheck> {
 protected:
  static void SetUpTestSuite() { transport_ = NewTransport(uint64_t{1} << 30).release(); }
  static void TearDownTestSuite() { delete transport_; }

  static Transport* transport_;
};

Transport* MpiCollectivesTest::transport_ = nullptr;

// Every collective is right between processes, for every size, type and reduction.
TEST_P(MpiCollectivesTest, AllCases) {
  for (const CollectiveCase& one : AllCollectiveCases()) GetParam().check(*transport_, one);
}

INSTANTIATE_TEST_SUITE_P(All, MpiCollectivesTest, testing::ValuesIn(AllTransportCollectives()),
                         [](const auto& info) { return info.param.name; });

enum class Layout { kOneNode, kTwoNodes, kTwoNodesBySockets };

class MpiGroupTest : public testing::TestWithParam<std::tuple<Layout, CollectiveCase>> {};

// All operations of a group are right, in ordinary memory and in the arena. They run on one node, and on two simulated
// nodes that take every second rank.
TEST_P(MpiGroupTest, AllOperations) {
  const auto& [layout, one] = GetParam();
  GroupOptions options;
  if (layout != Layout::kOneNode) options.node = absl::StrCat("node ", TestSession().rank() % 2);
  options.tuning.between_nodes =
      layout == Layout::kTwoNodesBySockets ? Tuning::BetweenNodes::kSockets : Tuning::BetweenNodes::kMpi;
  const absl::StatusOr<std::unique_ptr<Group>> group = MakeMpiGroup(TestSession(), options);
  ASSERT_EQ(group.status(), absl::OkStatus());
  CheckGroup(**group, one);
}

std::string NameOf(Layout layout) {
  switch (layout) {
    case Layout::kOneNode:
      return "OnOneNode";
    case Layout::kTwoNodes:
      return "OnTwoNodes";
    case Layout::kTwoNodesBySockets:
      return "OnTwoNodesBySockets";
  }
  return "Unknown";
}

INSTANTIATE_TEST_SUITE_P(
    All, MpiGroupTest,
    testing::Combine(testing::Values(Layout::kOneNode, Layout::kTwoNodes, Layout::kTwoNodesBySockets),
                     testing::ValuesIn(AllCollectiveCases())),
    [](const auto& info) { return NameOf(std::get<1>(info.param)) + NameOf(std::get<0>(info.param)); });

// Messages longer than MPI's limit travel in several parts. The test lowers that limit to a number that divides none of
// the sizes.
TEST(MpiTransportTest, LongMessagesTravelInSeveral) {
  const std::unique_ptr<Transport> transport = NewTransport(1001);
  ASSERT_NE(transport, nullptr);
  for (SizeClass size : {SizeClass::kOne, SizeClass::kOdd, SizeClass::kLarge}) {
    CheckAllReduce(*transport, RingAllReduce, {size, /*pieces=*/true});
  }
}

// A barrier of processes returns on all of them, many times in a row.
TEST(MpiTransportTest, Barrier) {
  const std::unique_ptr<Transport> transport = NewTransport(uint64_t{1} << 30);
  ASSERT_NE(transport, nullptr);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(DisseminationBarrier(*transport, SteadyNow() + absl::Seconds(20)), absl::OkStatus());
  }
}

}  // namespace
}  // namespace hooke
