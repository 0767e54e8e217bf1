// Measures how fast vectors are reduced, for the plain loop and for each variant that this CPU runs. Each variant is
// checked against the loop before it is timed. Bytes count reads and writes.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/reduce/reduce_dispatch.h"
#include "mpi_group/reduce/reduce_reference.h"
#include "mpi_group/reduce/reduce_variant.h"

namespace hooke {
namespace {

// The timed work: `sources` vectors of `bytes` bytes, reduced in place into the first `destinations` of them.
struct Work {
  Reduction reduction;
  int sources;
  int destinations;
  uint64_t bytes;
};

// The vectors and pointers to them. For timing they hold zeros, which any number of reductions leaves unchanged.
struct Operands {
  explicit Operands(const Work& work, char fill) : vectors(work.sources, std::string(work.bytes, fill)) {
    for (std::string& vector : vectors) sources.push_back(vector.data());
    for (int i = 0; i < work.destinations; ++i) destinations.push_back(vectors[i].data());
  }
  std::vector<std::string> vectors;
  std::vector<const char*> sources;
  std::vector<char*> destinations;
};

// Runs the variant; null stands for the plain loop.
void Run(const ReduceVariant* variant, const Work& work, const Operands& at) {
  const Reduction& reduction = work.reduction;
  const uint64_t values = work.bytes / SizeOf(reduction.type);
  if (variant == nullptr) return ReferenceReduce(reduction, at.sources, at.destinations, values);
  variant->reduce[static_cast<int>(reduction.type)][static_cast<int>(reduction.op)](
      at.sources.data(), at.sources.size(), at.destinations.data(), at.destinations.size(), values, reduction.mean_of);
}

bool IsRight(const ReduceVariant* variant, Work work) {
  work.bytes = 10008;
  Operands got(work, '\x3C');
  Operands want(work, '\x3C');
  Run(variant, work, got);
  Run(nullptr, work, want);
  return got.vectors == want.vectors;
}

void Time(benchmark::State& state, const ReduceVariant* variant, const Work& work) {
  if (!IsRight(variant, work)) return state.SkipWithError("the result is wrong");
  const Operands at(work, '\0');
  for (auto _ : state) {
    Run(variant, work, at);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * (work.sources + work.destinations) * work.bytes));
}

std::string NameOf(const Work& work, const ReduceVariant* variant) {
  return absl::StrCat(NameOf(work.reduction.type), "/", NameOf(work.reduction.op), "/", work.sources, "to",
                      work.destinations, "/", work.bytes >> 10, "KiB/", variant == nullptr ? "plain" : variant->name);
}

void Register(const Work& work) {
  std::vector<const ReduceVariant*> variants = {nullptr};
  for (const ReduceVariant* variant : SupportedReduceVariants()) variants.push_back(variant);
  for (const ReduceVariant* variant : variants) {
    benchmark::RegisterBenchmark(NameOf(work, variant).c_str(),
                                 [variant, work](benchmark::State& state) { Time(state, variant, work); });
  }
}

void RegisterAll() {
  const Reduction sum = {DataType::kFloat32, ReduceOp::kSum};
  for (uint64_t bytes : {uint64_t{16} << 10, uint64_t{1} << 20, uint64_t{64} << 20}) {
    Register({sum, 2, 2, bytes});
    Register({sum, 2, 1, bytes});
    Register({sum, 4, 4, bytes});
    Register({{DataType::kBFloat16, ReduceOp::kSum}, 2, 2, bytes});
    Register({{DataType::kFloat16, ReduceOp::kSum}, 2, 2, bytes});
  }
  Register({{DataType::kFloat32, ReduceOp::kMean, 2}, 2, 2, uint64_t{16} << 10});
  Register({{DataType::kFloat32, ReduceOp::kMin}, 2, 2, uint64_t{16} << 10});
  Register({{DataType::kFloat64, ReduceOp::kSum}, 2, 2, uint64_t{16} << 10});
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  hooke::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
