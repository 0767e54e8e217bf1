// That a profile costs less than it may: 1 % of a step.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/profile/profile.h"
#include "mpi_group/profile/profiled_group.h"

namespace hooke {
namespace {

// Less than any model's step takes: the built-in mlp's, 64 samples on one core, takes about 2 ms.
constexpr int64_t kStepNs = 2'000'000;
// More than a step of it has: three buckets, and the phases around them.
constexpr int kCalls = 8, kPhases = 8;
constexpr int kSteps = 200, kRepetitions = 50;

// Nanoseconds of the collectives of a step: the least of many means, so what else the machine does is not in it.
double StepNs(Group& group, ProfileRecorder* recorder) {
  std::vector<float> values(kCalls);
  std::vector<TensorList> lists;
  lists.reserve(kCalls);
  for (size_t call = 0; call < kCalls; ++call) lists.emplace_back(absl::MakeSpan(values).first(call + 1));
  int64_t least = INT64_MAX;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const int64_t begin = MonotonicNanoseconds();
    for (uint64_t step = 0; step < kSteps; ++step) {
      for (uint32_t phase = 0; recorder != nullptr && phase < kPhases; ++phase) recorder->Enter({phase, true, step});
      for (const TensorList& list : lists) EXPECT_TRUE(group.AllReduce(list, ReduceOp::kSum).ok());
    }
    least = std::min(least, MonotonicNanoseconds() - begin);
  }
  return static_cast<double>(least) / kSteps;
}

TEST(ProfileCost, UnderOnePercentOfAStep) {
  ProfileOptions options;
  options.clock = MonotonicNanoseconds;
  ProfileRecorder recorder(options);
  const std::unique_ptr<Group> plain = std::move(MakeInProcessGroups(1)[0]);
  const std::unique_ptr<Group> profiled = MakeProfiledGroup(std::move(MakeInProcessGroups(1)[0]), recorder);
  const double cost_ns = StepNs(*profiled, &recorder) - StepNs(*plain, nullptr);
  RecordProperty("nanoseconds_per_step", static_cast<int>(cost_ns));
  EXPECT_LT(cost_ns, 0.01 * kStepNs);
  uint64_t calls = 0;
  for (const CollectiveStatistics& each : recorder.Snapshot().collectives) calls += each.calls;
  EXPECT_EQ(calls, uint64_t{kCalls} * kSteps * kRepetitions) << "what was timed was not all recorded";
}

}  // namespace
}  // namespace hooke
