// Tests issue orders between processes, with MPI calls from several threads and in memory that the ranks share.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/groups/mpi_group.h"
#include "mpi_group/issue_order/issue_order.h"
#include "mpi_group/mpi/mpi_test_session.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

constexpr size_t kBuckets = 7;

class IssueOrderMpiTest : public ::testing::TestWithParam<std::tuple<IssuePolicy, bool>> {};

// Buckets become ready in another order on each rank, and every sum is exact. Buckets are small and large, in the arena
// and in ordinary memory. The lanes of the concurrent order are clones, for which the group's arena is an arena too.
// The test runs on one node, and on two simulated nodes with every second rank each. On two nodes each lane has sockets
// of its own.
TEST_P(IssueOrderMpiTest, NoOrderOfReadinessBlocksOrMixes) {
  const auto& [policy, two_nodes] = GetParam();
  GroupOptions group_options;
  if (two_nodes) group_options.node = absl::StrCat("node ", TestSession().rank() % 2);
  group_options.tuning.between_nodes = Tuning::BetweenNodes::kSockets;
  const std::unique_ptr<Group> group = *MakeMpiGroup(TestSession(), group_options);
  std::vector<std::unique_ptr<Group>> clones;
  for (const uint64_t values : {1u, 100u, 30'000u}) {
    const absl::Span<float> arena = *AllocateSharedValues<float>(*group, kBuckets * values);
    std::vector<float> own(kBuckets * values);
    for (const absl::Span<float> memory : {arena, absl::MakeSpan(own)}) {
      clones.clear();
      IssueOrderOptions options;
      options.policy = policy;
      options.lanes = {group.get()};
      while (policy == IssuePolicy::kConcurrent && options.lanes.size() < 3) {
        clones.push_back(*group->Clone());
        options.lanes.push_back(clones.back().get());
      }
      for (size_t b = 0; b < kBuckets; ++b) {
        options.buckets.push_back(TensorList(memory.subspan(b * values, values)));
      }
      options.collective = [](Group& lane, const TensorList& bucket) { return lane.AllReduce(bucket, ReduceOp::kSum); };
      absl::StatusOr<std::unique_ptr<IssueOrder>> order = MakeIssueOrder(options);
      ASSERT_TRUE(order.ok()) << order.status();
      std::vector<size_t> readiness(kBuckets);
      std::iota(readiness.begin(), readiness.end(), 0);
      std::mt19937 random(group->rank());
      for (int pass = 1; pass <= 20; ++pass) {
        std::shuffle(readiness.begin(), readiness.end(), random);
        const size_t last = random() % (kBuckets + 1);  // Number of buckets that become ready with FinishWith.
        for (size_t i = 0; i < kBuckets; ++i) {
          const absl::Span<float> bucket = memory.subspan(readiness[i] * values, values);
          for (float& value : bucket) value = static_cast<float>(pass + group->rank());
          if (i + last < kBuckets) (*order)->Ready(readiness[i]);
        }
        const absl::Status status = (*order)->FinishWith(absl::MakeConstSpan(readiness).last(last));
        ASSERT_TRUE(status.ok()) << status;
        const int n = group->size();
        const int whole = n * pass + n * (n - 1) / 2;
        const auto sum = static_cast<float>(whole);
        EXPECT_EQ(std::count(memory.begin(), memory.end(), sum), memory.size()) << "pass " << pass;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, IssueOrderMpiTest,
                         ::testing::Combine(::testing::Values(IssuePolicy::kFunneled, IssuePolicy::kConcurrent,
                                                              IssuePolicy::kChained),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(NameOf(std::get<0>(info.param)),
                                               std::get<1>(info.param) ? "OnTwoNodes" : "OnOneNode");
                         });

}  // namespace
}  // namespace hooke
