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

// AllReduceReplicas leaves the same result in every list of every rank: the reduction of all these lists. That holds
// for every size, type and reduction.
TEST_P(ReplicasTest, AllCases) {
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(GetParam());
  RunRanks(GetParam(), [&](int rank) {
    for (const CollectiveCase& one : AllCollectiveCases()) CheckReplicas(*groups[rank], one);
  });
}

INSTANTIATE_TEST_SUITE_P(All, ReplicasTest, testing::Range(1, 5));

// A mean is right even if the sum is out of the type's range, for two lists on one rank and on two.
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
        EXPECT_EQ(mean, 44992);  // 45000 rounded to float16.
      }
    });
  }
}

// If ranks pass different arguments, all of them get an error, even if the group's own calls would not notice the
// difference.
TEST(ReplicasRefusedTest, RanksThatDiffer) {
  const std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(2);
  struct Case {
    size_t lists = 2;
    uint64_t values = 3;
    DataType type = DataType::kFloat16;
    ReduceOp op = ReduceOp::kMean;
    const char* what = "";
  };
  const Case wrong[] = {
      {3, 3, DataType::kFloat16, ReduceOp::kMean, "the number of replicas is not the same on all ranks"},
      {1, 3, DataType::kFloat16, ReduceOp::kMean, "the number of replicas is not the same on all ranks"},
      {2, 4, DataType::kFloat16, ReduceOp::kMean, "the size of a replica is not the same on all ranks"},
      {2, 3, DataType::kBFloat16, ReduceOp::kMean, "the type is not the same on all ranks"},
      {2, 3, DataType::kFloat16, ReduceOp::kSum, "the operation is not the same on all ranks"},
      {0, 3, DataType::kFloat16, ReduceOp::kMean, "do not fit each other"},
  };
  RunRanks(2, [&](int rank) {
    for (const Case& one : wrong) {
      const Case mine = rank == 1 ? one : Case();
      std::vector<char> memory(24, 1);  // Room for three lists of four.
      std::vector<TensorList> lists;
      for (size_t i = 0; i < mine.lists; ++i) {
        lists.emplace_back(mine.type, absl::MakeSpan(memory).subspan(i * 8, mine.values * 2));
      }
      const absl::Status status = AllReduceReplicas(*groups[rank], lists, mine.op);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      if (rank == 0 || mine.lists > 0) {
        EXPECT_THAT(std::string(status.message()), HasSubstr(one.what));
      }
      EXPECT_EQ(memory, std::vector<char>(memory.size(), 1));
    }
    EXPECT_EQ(groups[rank]->Barrier(), absl::OkStatus());
  });
}

// Lists that do not fit each other are refused with an error that says why, and the group remains usable.
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
