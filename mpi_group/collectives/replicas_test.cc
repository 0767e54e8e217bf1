#include "mpi_group/collectives/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "mpi_group/collectives/collective_cases.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/reduce/reduce.h"

namespace hooke {
namespace {

using testing::HasSubstr;

class ReplicasTest : public testing::TestWithParam<int> {};

// All lists of all ranks end with the reduction of them all, for every size, type and reduction.
TEST_P(ReplicasTest, AllCases) {
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(GetParam());
  RunRanks(GetParam(), [&](int rank) {
    for (const CollectiveCase& one : AllCollectiveCases()) CheckReplicas(*groups[rank], one);
  });
}

INSTANTIATE_TEST_SUITE_P(All, ReplicasTest, testing::Range(1, 5));

// The mean of values whose sum is out of the type's range: two lists, of one rank and of two.
TEST(ReplicasOverflowTest, MeanOfLargeHalves) {
  for (int n : {1, 2}) {
    const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(n);
    RunRanks(n, [&](int rank) {
      const std::vector<float> numbers = {40000, 50000};
      std::vector<Float16> a(1);
      std::vector<Float16> b(1);
      const TensorList of_a(absl::MakeSpan(a));
      const TensorList of_b(absl::MakeSpan(b));
      Narrow(DataType::kFloat16, absl::MakeConstSpan(numbers).first(1), of_a.pieces()[0]);
      Narrow(DataType::kFloat16, absl::MakeConstSpan(numbers).last(1), of_b.pieces()[0]);
      ASSERT_EQ(AllReduceReplicas(*groups[rank], {of_a, of_b}, ReduceOp::kMean), absl::OkStatus());
      for (const TensorList& list : {of_a, of_b}) {
        float mean = 0;
        Widen(DataType::kFloat16, list.pieces()[0], absl::MakeSpan(&mean, 1));
        EXPECT_EQ(mean, 44992);  // 45000, as float16 has it.
      }
    });
  }
}

// Lists that do not fit each other are refused with what is wrong, and the group remains usable.
TEST(ReplicasRefusedTest, ListsThatDiffer) {
  const std::unique_ptr<Group> group = std::move(MakeInProcessGroups(1)[0]);
  std::vector<float> a(3);
  std::vector<float> b(4);
  std::vector<int32_t> c(3);
  const TensorList of_a(absl::MakeSpan(a));
  EXPECT_EQ(AllReduceReplicas(*group, {}, ReduceOp::kSum).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(AllReduceReplicas(*group, {of_a, TensorList(absl::MakeSpan(b))}, ReduceOp::kSum).message()),
              HasSubstr("replica 1 has 4 values of float32, replica 0 has 3 of float32"));
  EXPECT_THAT(std::string(AllReduceReplicas(*group, {of_a, TensorList(absl::MakeSpan(c))}, ReduceOp::kSum).message()),
              HasSubstr("replica 1 has 3 values of int32, replica 0 has 3 of float32"));
  EXPECT_EQ(AllReduceReplicas(*group, {of_a, of_a.Slice({0, 3})}, ReduceOp::kMax), absl::OkStatus());
}

}  // namespace
}  // namespace hooke
