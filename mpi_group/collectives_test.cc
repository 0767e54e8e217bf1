#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/barrier.h"
#include "mpi_group/collective_cases.h"
#include "mpi_group/in_process_transport.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/reference.h"
#include "mpi_group/ring.h"

namespace hooke {
namespace {

class CollectivesTest : public testing::TestWithParam<std::tuple<int, CollectiveCase>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  const CollectiveCase& collective_case() const { return std::get<1>(GetParam()); }

  void Run(const std::function<void(Transport&)>& body) const {
    const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(ranks());
    RunRanks(ranks(), [&](int rank) { body(*transports[rank]); });
  }
};

// The ring gives the reduction of all ranks' values, the same bits everywhere.
TEST_P(CollectivesTest, RingAllReduce) {
  Run([&](Transport& transport) {
    CheckAllReduce(transport, RingAllReduce, /*in_rank_order=*/false, collective_case());
  });
}

// The naive version gives exactly the reduction in rank order.
TEST_P(CollectivesTest, ReferenceAllReduce) {
  Run([&](Transport& transport) {
    CheckAllReduce(transport, ReferenceAllReduce, /*in_rank_order=*/true, collective_case());
  });
}

// Every rank ends with the root's values, whichever rank that is.
TEST_P(CollectivesTest, Broadcast) {
  Run([&](Transport& transport) { CheckBroadcast(transport, collective_case()); });
}

// Every rank ends with all parts; values in no part stay.
TEST_P(CollectivesTest, AllGather) {
  Run([&](Transport& transport) { CheckAllGather(transport, collective_case()); });
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         testing::Combine(testing::Range(1, 9), testing::ValuesIn(AllCollectiveCases())),
                         [](const auto& info) {
                           return absl::StrCat(NameOf(std::get<1>(info.param)), "On", std::get<0>(info.param));
                         });

class BarrierTest : public testing::TestWithParam<int> {};

// No rank passes a barrier before the last has come, many times in a row.
TEST_P(BarrierTest, NobodyPassesBeforeAllHaveCome) {
  const int n = GetParam();
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(n);
  std::atomic<int> arrived{0};
  RunRanks(n, [&](int rank) {
    for (int round = 1; round <= 50; ++round) {
      ++arrived;
      ASSERT_EQ(DisseminationBarrier(*transports[rank], absl::Now() + absl::Seconds(20)), absl::OkStatus());
      EXPECT_GE(arrived.load(), round * n);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, BarrierTest, testing::Range(1, 9));

}  // namespace
}  // namespace hooke
