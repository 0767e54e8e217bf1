// The cases of collectives_test.cc and transport_group_test.cc between processes; run under mpirun by several numbers
// of ranks.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "mpi_group/barrier.h"
#include "mpi_group/collective_cases.h"
#include "mpi_group/mpi_group.h"
#include "mpi_group/mpi_test_session.h"
#include "mpi_group/mpi_transport.h"
#include "mpi_group/ring.h"
#include "mpi_group/transport_collectives.h"

namespace hooke {
namespace {

std::unique_ptr<Transport> NewTransport(uint64_t message_bytes_max) {
  MpiTransportOptions options;
  options.deadline = absl::Now() + absl::Seconds(20);
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

class MpiGroupTest : public testing::TestWithParam<CollectiveCase> {};

// All operations of a group are right, in ordinary memory and in the shared arena.
TEST_P(MpiGroupTest, AllOperations) {
  const absl::StatusOr<std::unique_ptr<Group>> group = MakeMpiGroup(TestSession(), GroupOptions());
  ASSERT_EQ(group.status(), absl::OkStatus());
  CheckGroup(**group, GetParam());
  CheckReplicas(**group, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, MpiGroupTest, testing::ValuesIn(AllCollectiveCases()),
                         [](const auto& info) { return NameOf(info.param); });

// Messages longer than MPI takes at once travel in several; the limit is lowered to see it, to one that divides
// nothing.
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
    ASSERT_EQ(DisseminationBarrier(*transport, absl::Now() + absl::Seconds(20)), absl::OkStatus());
  }
}

}  // namespace
}  // namespace hooke
