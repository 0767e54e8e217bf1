// Measures block exchanges and optimizer steps, and compares them with plain passes over as many bytes. Results are
// checked before anything is timed. Reported bytes are those that must be read from and written to memory, which limits
// all loops whose vectors exceed the cache. `tests/benchmarks/run elastic` runs this program and prints the share of
// one core's bandwidth.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "algorithms/elastic.h"
#include "algorithms/optimizer.h"

namespace hooke {
namespace {

constexpr double kAlpha = 0.3;

// Values that differ from one another.
std::vector<float> Wave(size_t values, float phase) {
  std::vector<float> wave(values);
  for (size_t i = 0; i < values; ++i) wave[i] = std::sin(phase + static_cast<float>(i));
  return wave;
}

std::unique_ptr<Optimizer> MomentumSgd(size_t values) {
  OptimizerOptions options;
  options.momentum = 0.9;
  return std::move(MakeOptimizer(options, values)).value();
}

bool Near(float got, double want) { return std::abs(got - want) <= 1e-5; }

bool ElasticIsRight() {
  const size_t values = 10007;
  const std::vector<float> x = Wave(values, 0);
  const std::vector<float> before = Wave(values, 1);
  std::vector<float> center = before;
  std::vector<float> answer(values);
  ElasticExchange(kAlpha, x, absl::MakeSpan(center), absl::MakeSpan(answer));
  for (size_t i = 0; i < values; ++i) {
    const double d = kAlpha * (static_cast<double>(x[i]) - before[i]);
    if (!Near(answer[i], d) || !Near(center[i], before[i] + d)) return false;
  }
  return true;
}

bool MomentumIsRight() {
  const size_t values = 10007;
  const std::vector<float> gradient = Wave(values, 0);
  std::vector<float> p(values);
  const std::unique_ptr<Optimizer> optimizer = MomentumSgd(values);
  optimizer->Step(0.1, gradient, absl::MakeSpan(p));
  optimizer->Step(0.1, gradient, absl::MakeSpan(p));
  for (size_t i = 0; i < values; ++i) {
    if (!Near(p[i], -0.1 * (1 + 1.9) * gradient[i])) return false;
  }
  return true;
}

void SetBytes(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(bytes));
}

// Reads x and center, writes center and answer: 16 bytes per value.
void BenchmarkElasticExchange(benchmark::State& state) {
  const size_t values = state.range(0);
  const std::vector<float> x = Wave(values, 0);
  std::vector<float> center = Wave(values, 1);
  std::vector<float> answer(values);
  while (state.KeepRunning()) {
    ElasticExchange(kAlpha, x, absl::MakeSpan(center), absl::MakeSpan(answer));
    benchmark::DoNotOptimize(answer.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, values * 16);
}

// An exchange as a server makes it: a group's block and its answer stay in cache, and the center passes by block after
// block. In memory it reads and writes only the center: 8 bytes per value.
void BenchmarkServedExchange(benchmark::State& state) {
  constexpr size_t kBlock = 16384;
  const size_t values = state.range(0);
  const std::vector<float> x = Wave(kBlock, 0);
  std::vector<float> center = Wave(values, 1);
  std::vector<float> answer(kBlock);
  while (state.KeepRunning()) {
    for (size_t first = 0; first < values; first += kBlock) {
      const size_t count = std::min(kBlock, values - first);
      ElasticExchange(kAlpha, absl::MakeSpan(x).first(count), absl::MakeSpan(center).subspan(first, count),
                      absl::MakeSpan(answer).first(count));
      benchmark::DoNotOptimize(answer.data());
    }
    benchmark::ClobberMemory();
  }
  SetBytes(state, values * 8);
}

// The least work that changes a vector: it is read and written in place, 8 bytes per value.
void BenchmarkInPlace(benchmark::State& state) {
  std::vector<float> values = Wave(state.range(0), 1);
  float* const v = values.data();
  const size_t count = values.size();
  while (state.KeepRunning()) {
    for (size_t i = 0; i < count; ++i) v[i] = -v[i];
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, values.size() * 8);
}

// Reads gradient, velocity and parameters, writes velocity and parameters: 20 bytes per value.
void BenchmarkMomentumStep(benchmark::State& state) {
  const size_t values = state.range(0);
  const std::vector<float> gradient = Wave(values, 0);
  std::vector<float> p = Wave(values, 1);
  const std::unique_ptr<Optimizer> optimizer = MomentumSgd(values);
  while (state.KeepRunning()) {
    optimizer->Step(1e-6, gradient, absl::MakeSpan(p));
    benchmark::DoNotOptimize(p.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, values * 20);
}

// Moves as many bytes as ElasticExchange does for the same number of values: reads 8 and writes 8 per value.
void BenchmarkMemcpy(benchmark::State& state) {
  const size_t bytes = static_cast<size_t>(state.range(0)) * 8;
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes);
  while (state.KeepRunning()) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, bytes * 2);
}

double Percentile99(const std::vector<double>& times) {
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(sorted.size()))) - 1];
}

// Sets the sizes: one block, a model of 1.66 M parameters, and a vector of 64 MiB.
void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(16384)->Arg(1663370)->Arg(16 << 20);
  benchmark->Repetitions(9)->ReportAggregatesOnly(true)->ComputeStatistics("p99", Percentile99);
}

BENCHMARK(BenchmarkElasticExchange)->Apply(Sizes);
BENCHMARK(BenchmarkServedExchange)->Apply(Sizes);
BENCHMARK(BenchmarkMomentumStep)->Apply(Sizes);
BENCHMARK(BenchmarkMemcpy)->Apply(Sizes);
BENCHMARK(BenchmarkInPlace)->Apply(Sizes);

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  if (!hooke::ElasticIsRight() || !hooke::MomentumIsRight()) {
    std::fprintf(stderr, "elastic_benchmark: a result is wrong; run //algorithms:elastic_test and optimizer_test\n");
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
