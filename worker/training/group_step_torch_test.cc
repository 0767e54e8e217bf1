#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "mpi_group/rank_threads.h"
#include "worker/model/model.h"
#include "worker/training/group_step.h"
#include "worker/training/group_step_ranks.h"

namespace hooke {
namespace {

// Shows the same as the test of this name in group_step_test.cc, but with LibTorch models. LibTorch's hooks report
// gradients, and batch norm has buffers. Two groups run at a time in one process.
TEST(AggregationTorchTest, EveryWayIsTheSameStep) {
  for (const std::string name : {"mlp", "resnet20"}) {
    RankRun base = RunOf(Plain());
    base.steps = 4;
    base.make = [name] { return *MakeModel({.name = name}); };
    const std::vector<RankState> plain = RunGroup(2, base);
    ASSERT_TRUE(plain[0].status.ok()) << plain[0].status;
    EXPECT_NE(plain[0].losses.back(), plain[0].losses.front());
    for (const Way& way : AllWays()) {
      SCOPED_TRACE(absl::StrCat(way.name, ", ", name));
      base.options = way.options;
      base.options.bucket_bytes = 64 << 10;
      std::vector<RankState> states[2];
      RunRanks(2, [&](int group) { states[group] = RunGroup(2, base); });
      for (const std::vector<RankState>& group : states) {
        for (const RankState& state : group) {
          ASSERT_TRUE(state.status.ok()) << state.status;
          ExpectNear(state.vector, plain[0].vector, 0);
          ExpectNear(state.losses, plain[0].losses, 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hooke
