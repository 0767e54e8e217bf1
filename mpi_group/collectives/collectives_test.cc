#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/collectives/barrier.h"
#include "mpi_group/collectives/transport_collectives.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

class CollectivesTest : public testing::TestWithParam<std::tuple<NamedCheck, int>> {};

// Every collective is right among 1 to 8 ranks, for every size, type and reduction.
TEST_P(CollectivesTest, AllCases) {
  const int ranks = std::get<1>(GetParam());
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(ranks);
  RunRanks(ranks, [&](int rank) {
    SCOPED_TRACE(absl::StrCat("rank ", rank));
    for (const CollectiveCase& one : AllCollectiveCases()) std::get<0>(GetParam()).check(*transports[rank], one);
  });
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         testing::Combine(testing::ValuesIn(AllTransportCollectives()), testing::Range(1, 9)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "On", std::get<1>(info.param));
                         });

class BarrierTest : public testing::TestWithParam<int> {};

// In many barriers in a row, no rank passes before the last one has come.
TEST_P(BarrierTest, NobodyPassesBeforeAllHaveCome) {
  const int n = GetParam();
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(n);
  std::atomic<int> arrived{0};
  RunRanks(n, [&](int rank) {
    for (int round = 1; round <= 50; ++round) {
      ++arrived;
      ASSERT_EQ(DisseminationBarrier(*transports[rank], SteadyNow() + absl::Seconds(20)), absl::OkStatus());
      EXPECT_GE(arrived.load(), round * n);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, BarrierTest, testing::Range(1, 9));

}  // namespace
}  // namespace hooke
