// Measures the cost of the profile: a recorded call of a group of one rank, against the same call without a profile.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "mpi_group/group.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/profile/profile.h"
#include "mpi_group/profile/profiled_group.h"

namespace hooke {
namespace {

// Times calls with state.range(0) different sizes in turn. 0: calls without the profile.
void BM_Call(benchmark::State& state) {
  ProfileOptions options;
  options.clock = MonotonicNanoseconds;
  ProfileRecorder recorder(options);
  std::unique_ptr<Group> group = std::move(MakeInProcessGroups(1)[0]);
  if (state.range(0) > 0) group = MakeProfiledGroup(std::move(group), recorder);
  std::vector<float> values(1000);
  std::vector<TensorList> lists;
  for (int64_t i = 0; i < std::max<int64_t>(state.range(0), 1); ++i) {
    lists.emplace_back(absl::MakeSpan(values).subspan(0, static_cast<size_t>(i + 1)));
  }
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(group->AllReduce(lists[next], ReduceOp::kSum));
    next = next + 1 == lists.size() ? 0 : next + 1;
  }
}
BENCHMARK(BM_Call)->Arg(0)->Arg(1)->Arg(20)->Arg(200);

// Times entering a phase, as the trainer does.
void BM_Enter(benchmark::State& state) {
  ProfileOptions options;
  options.clock = MonotonicNanoseconds;
  ProfileRecorder recorder(options);
  for (auto _ : state) recorder.Enter({3, true, 1});
}
BENCHMARK(BM_Enter);

// Times the snapshot that the reporter takes every few seconds while the trainer runs.
void BM_Snapshot(benchmark::State& state) {
  ProfileOptions options;
  options.clock = MonotonicNanoseconds;
  ProfileRecorder recorder(options);
  ProfileLane* lane = recorder.AddLane();
  for (int i = 0; i < 20000; ++i) lane->Record({Operation::kAllReduce, false, uint64_t(i % 20), i, i * i % 10000000});
  for (auto _ : state) benchmark::DoNotOptimize(recorder.Snapshot());
}
BENCHMARK(BM_Snapshot);

}  // namespace
}  // namespace hooke

BENCHMARK_MAIN();
