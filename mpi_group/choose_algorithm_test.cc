#include "mpi_group/choose_algorithm.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// The whole of the decision, as a table.
TEST(ChooseAlgorithmTest, Table) {
  constexpr uint64_t kMany = 6600000;
  const struct {
    int ranks;
    Workload workload;
    Algorithm algorithm;
  } kTable[] = {
      {1, {Operation::kAllReduce, kMany, true}, Algorithm::kNothing},
      {1, {Operation::kBarrier, 0, false}, Algorithm::kNothing},
      {2, {Operation::kAllReduce, 0, false}, Algorithm::kNothing},
      {2, {Operation::kBroadcast, 0, false}, Algorithm::kNothing},
      {2, {Operation::kBarrier, 0, false}, Algorithm::kDissemination},
      {2, {Operation::kAllReduce, 4, false}, Algorithm::kRing},
      {2, {Operation::kAllReduce, kMany, false}, Algorithm::kRing},
      {3, {Operation::kAllReduce, kTinyBytes, false}, Algorithm::kReference},
      {3, {Operation::kAllReduce, kTinyBytes + 1, false}, Algorithm::kRing},
      {2, {Operation::kAllReduce, 4, true}, Algorithm::kSharedMemory},
      {8, {Operation::kAllReduce, kMany, true}, Algorithm::kSharedMemory},
      {8, {Operation::kAllGather, kMany, true}, Algorithm::kSharedMemory},
      {8, {Operation::kAllGather, kMany, false}, Algorithm::kRing},
      {8, {Operation::kBroadcast, kMany, true}, Algorithm::kBinomialTree},
  };
  for (const auto& row : kTable) {
    const Choice choice = ChooseAlgorithm({row.ranks}, row.workload);
    EXPECT_EQ(choice.algorithm, row.algorithm)
        << NameOf(row.workload.operation) << " of " << row.workload.bytes << " bytes on " << row.ranks << " ranks";
    EXPECT_FALSE(choice.reason.empty());
  }
}

}  // namespace
}  // namespace hooke
