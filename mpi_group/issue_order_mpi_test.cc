// Issue orders between processes: with MPI's threads, and in memory that the ranks share.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi_group/issue_order.h"
#include "mpi_group/mpi_group.h"
#include "mpi_group/mpi_test_session.h"

namespace hooke {
namespace {

constexpr size_t kBuckets = 7;

class IssueOrderMpiTest : public ::testing::TestWithParam<IssuePolicy> {};

// Small and large buckets, in the arena and in memory of each rank, become ready in another order on each rank; every
// sum is exact. The lanes of the concurrent order are clones, in which the arena is the arena.
TEST_P(IssueOrderMpiTest, NoOrderOfReadinessBlocksOrMixes) {
  const std::unique_ptr<Group> group = *MakeMpiGroup(TestSession(), {});
  std::vector<std::unique_ptr<Group>> clones;
  for (const uint64_t values : {1u, 100u, 30'000u}) {
    const absl::Span<float> arena = *AllocateSharedValues<float>(*group, kBuckets * values);
    std::vector<float> own(kBuckets * values);
    for (const absl::Span<float> memory : {arena, absl::MakeSpan(own)}) {
      clones.clear();
      IssueOrderOptions options;
      options.policy = GetParam();
      options.lanes = {group.get()};
      while (GetParam() == IssuePolicy::kConcurrent && options.lanes.size() < 3) {
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
      for (int round = 1; round <= 20; ++round) {
        std::shuffle(readiness.begin(), readiness.end(), random);
        for (size_t b : readiness) {
          for (float& value : memory.subspan(b * values, values)) value = static_cast<float>(round + group->rank());
          (*order)->Ready(b);
        }
        const absl::Status status = (*order)->Finish();
        ASSERT_TRUE(status.ok()) << status;
        const int n = group->size();
        const int whole = n * round + n * (n - 1) / 2;
        const auto sum = static_cast<float>(whole);
        EXPECT_EQ(std::count(memory.begin(), memory.end(), sum), memory.size()) << "round " << round;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, IssueOrderMpiTest,
                         ::testing::Values(IssuePolicy::kFunneled, IssuePolicy::kConcurrent, IssuePolicy::kChained),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

}  // namespace
}  // namespace hooke
