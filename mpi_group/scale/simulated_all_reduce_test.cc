#include "mpi_group/scale/simulated_all_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr uint64_t kKi = 1024;
constexpr Algorithm kAlgorithms[] = {Algorithm::kReference, Algorithm::kRing, Algorithm::kPairwise,
                                     Algorithm::kRecursiveDoubling, Algorithm::kHalvingDoubling};

// 1 Gbit/s, where bytes decide, and 100 Gbit/s, where the latency does.
constexpr LinkCost kLinks[] = {{30e-6, 8e-6, 8e-9}, {10e-6, 1e-6, 0.08e-9}};

void ExpectNear(const absl::StatusOr<double>& simulated, double model, double share) {
  ASSERT_EQ(simulated.status(), absl::OkStatus());
  EXPECT_NEAR(*simulated / model, 1, share) << "simulated " << *simulated << " s, model " << model << " s";
}

// The virtual time of the production code is that of the model, for every algorithm, among 2 to 64 ranks, whether or
// not their number is a power of two.
TEST(SimulatedAllReduceTest, TakesTheTimeOfTheModel) {
  for (int ranks : {2, 3, 4, 5, 6, 7, 8, 13, 16, 17, 31, 32, 64}) {
    for (uint64_t bytes : {4 * kKi, 100 * kKi, 1024 * kKi}) {
      if (ranks > 8 && bytes > 100 * kKi) continue;
      for (Algorithm algorithm : kAlgorithms) {
        for (const LinkCost& link : kLinks) {
          SCOPED_TRACE(absl::StrCat(NameOf(algorithm), " of ", bytes, " bytes by ", ranks, " ranks"));
          const ModelCall call = {ranks, bytes, 64 * kKi};
          ExpectNear(SimulateAllReduce(algorithm, call, link), AllReduceSeconds(algorithm, call, link), 0.05);
        }
      }
    }
  }
}

// Virtual time does not depend on how threads are scheduled.
TEST(SimulatedAllReduceTest, IsTheSameEachTime) {
  const ModelCall call = {13, 300 * kKi, 16 * kKi};
  for (Algorithm algorithm : kAlgorithms) {
    const absl::StatusOr<double> first = SimulateAllReduce(algorithm, call, kLinks[0]);
    const absl::StatusOr<double> second = SimulateAllReduce(algorithm, call, kLinks[0]);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(*first, *second) << NameOf(algorithm);
  }
}

// If bytes count several times, a simulation needs less memory and gives almost the same time.
TEST(SimulatedAllReduceTest, WithBytesThatCountManyTimes) {
  const ModelCall call = {16, 8192 * kKi};
  for (Algorithm algorithm : {Algorithm::kRing, Algorithm::kHalvingDoubling}) {
    SCOPED_TRACE(NameOf(algorithm));
    ExpectNear(SimulateAllReduce(algorithm, call, kLinks[0], 64), AllReduceSeconds(algorithm, call, kLinks[0]), 0.05);
  }
}

// Whole groups on several nodes, which set up shared memory and choose the algorithm as those of a job do.
TEST(SimulatedAllReduceTest, TwoLevelsTakeTheTimeOfTheModel) {
  std::vector<Algorithm> between;
  for (const TwoLevelCase& one : std::vector<TwoLevelCase>{{2, 2, 8 * kKi},
                                                           {8, 2, 100 * kKi},
                                                           {4, 4, 400 * kKi},
                                                           {3, 2, 1000 * kKi},
                                                           {8, 4, 1000 * kKi},
                                                           {20, 2, 4 * kKi},
                                                           {20, 2, 1000 * kKi}}) {
    SCOPED_TRACE(absl::StrCat(one.bytes, " bytes on ", one.nodes, " nodes of ", one.ranks_of_each));
    between.push_back(ChoiceBetweenNodes(one).algorithm);
    ExpectNear(SimulateTwoLevel(one, kLinks[0]), TwoLevelSeconds(one, kLinks[0]), 0.05);
  }
  for (Algorithm algorithm : {Algorithm::kRecursiveDoubling, Algorithm::kHalvingDoubling, Algorithm::kRing}) {
    EXPECT_NE(std::find(between.begin(), between.end(), algorithm), between.end()) << NameOf(algorithm);
  }
}

// Where a group has so many ranks that the model chooses, the choice is within a sixth of the fastest simulation.
TEST(SimulatedAllReduceTest, TheChoiceIsAmongTheFastest) {
  constexpr LinkCost kUsual = {20e-6, 4e-6, 0.8e-9};
  for (int ranks : {17, 48, 64}) {
    for (uint64_t bytes : {4 * kKi, 64 * kKi, 512 * kKi}) {
      SCOPED_TRACE(absl::StrCat(bytes, " bytes by ", ranks, " ranks"));
      const Choice choice = ChooseAlgorithm({ranks, ranks, 1, 1, true, false}, {Operation::kAllReduce, bytes});
      const ModelCall call = {ranks, bytes, choice.chunk_bytes};
      const absl::StatusOr<double> chosen = SimulateAllReduce(choice.algorithm, call, kUsual);
      ASSERT_EQ(chosen.status(), absl::OkStatus());
      for (Algorithm other : {Algorithm::kRing, Algorithm::kRecursiveDoubling, Algorithm::kHalvingDoubling}) {
        const absl::StatusOr<double> seconds = SimulateAllReduce(other, call, kUsual);
        ASSERT_EQ(seconds.status(), absl::OkStatus());
        EXPECT_LE(*chosen, 7.0 / 6 * *seconds) << NameOf(choice.algorithm) << " and " << NameOf(other);
      }
    }
  }
}

}  // namespace
}  // namespace hooke
