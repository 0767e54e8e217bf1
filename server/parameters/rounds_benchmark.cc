// Measures the CPU time that an exchange of a center costs a server, under rules with rounds, for few groups and for
// many. Threads act as groups, without sockets. This program checks that every round has the contributions of all
// groups. `tests/benchmarks/run rounds` runs it, and compares the CPU time with few groups to that with many.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "proto/job.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/test_center.h"
#include "server/parameters/test_shard.h"

namespace hooke {
namespace {

constexpr uint64_t kValues = 16 << 20;  // 64 MiB.

std::unique_ptr<Shard> MakeShard(uint32_t groups) {
  TestCenter center;
  center.groups = groups;
  center.values = kValues;
  v1::AttachRequest request = MakeStepRequest(center, v1::AveragingSpec::AVERAGE, /*learning_rate=*/1);
  request.mutable_job()->set_parameters(kValues);
  request.mutable_job()->set_steps_per_epoch(1 << 20);
  request.mutable_job()->set_grace_seconds(10);
  auto shard = Shard::Create(PlanShard(request, kBlockValues).value()).value();
  AttachGroup(*shard, 0);
  const std::vector<float> zeros(kBlockValues);
  for (uint64_t block = 0; block < shard->blocks(); ++block) {
    const Range range = shard->BlockRange(block);
    shard->WriteInitial(absl::UnixEpoch(), {}, range.begin, absl::MakeSpan(zeros).subspan(0, range.size()))
        .IgnoreError();
  }
  shard->CompleteInitialize({}).IgnoreError();
  for (uint32_t group = 0; group < groups; ++group) AttachGroup(*shard, group);
  return shard;
}

// Makes one exchange of all blocks for a group. Each group sends its number as every value. The center steps by the
// mean of all groups, at a learning rate of 1.
absl::Status ExchangeAll(Shard& shard, uint32_t group, uint32_t groups, uint64_t sequence) {
  const std::vector<float> values(kBlockValues, static_cast<float>(group));
  std::vector<float> answer(kBlockValues);
  const float expected = -static_cast<float>(sequence) * static_cast<float>(groups - 1) / 2;
  for (uint64_t block = 0; block < shard.blocks(); ++block) {
    const Range range = shard.BlockRange(block);
    const Speaker speaker = {group, 0, 1};
    absl::Status status =
        shard.ApplyBlock({speaker, sequence, range.begin}, absl::MakeSpan(values).subspan(0, range.size()),
                         absl::MakeSpan(answer).subspan(0, range.size()));
    if (!status.ok()) return status;
    if (answer[0] != expected) return absl::DataLossError("a round was not of all groups");
  }
  return absl::OkStatus();
}

void BenchmarkRound(benchmark::State& state) {
  const auto groups = static_cast<uint32_t>(state.range(0));
  const std::unique_ptr<Shard> shard = MakeShard(groups);
  uint64_t round = 0;
  for (auto _ : state) {
    ++round;
    std::vector<absl::Status> ends(groups);
    std::vector<std::thread> threads;
    threads.reserve(groups);
    for (uint32_t group = 0; group < groups; ++group) {
      threads.emplace_back([&, group] { ends[group] = ExchangeAll(*shard, group, groups, round); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& end : ends) {
      if (!end.ok()) state.SkipWithError(end.ToString().c_str());
    }
  }
  // The result of interest is CPU time per item.
  state.SetItemsProcessed(static_cast<int64_t>(round * groups));
}
BENCHMARK(BenchmarkRound)->Arg(8)->Arg(64)->Arg(256)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hooke

BENCHMARK_MAIN();
