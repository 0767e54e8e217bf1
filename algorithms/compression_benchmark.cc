// Measures encoding and decoding of the values of one message. The reported throughput counts the bytes of the float32
// values.

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "algorithms/compression.h"

namespace hooke {
namespace {

constexpr size_t kValues = 65536;  // Values in one message.

std::vector<float> Wave() {
  std::vector<float> wave(kValues);
  for (size_t i = 0; i < kValues; ++i) wave[i] = std::sin(static_cast<float>(i));
  return wave;
}

Encoding EncodingOf(const benchmark::State& state) {
  const auto compression = static_cast<Compression>(state.range(0));
  return {compression, compression == Compression::kTopK ? TopKOf(0.01) : uint16_t{0}};
}

void Report(const Encoding& encoding, benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kValues * sizeof(float)));
  state.counters["bytes_per_value"] = static_cast<double>(EncodedBytes(encoding, kValues)) / kValues;
  state.SetLabel(CompressionName(encoding.compression));
}

void BM_Encode(benchmark::State& state) {
  const Encoding encoding = EncodingOf(state);
  const std::vector<float> values = Wave();
  std::vector<char> bytes(EncodedBytes(encoding, kValues));
  for (auto _ : state) {
    if (!Encode(encoding, values, absl::MakeSpan(bytes)).ok()) state.SkipWithError("not encoded");
    benchmark::ClobberMemory();
  }
  Report(encoding, state);
}

void BM_Decode(benchmark::State& state) {
  const Encoding encoding = EncodingOf(state);
  std::vector<float> values = Wave();
  std::vector<char> bytes(EncodedBytes(encoding, kValues));
  if (!Encode(encoding, values, absl::MakeSpan(bytes)).ok()) state.SkipWithError("not encoded");
  for (auto _ : state) {
    if (!Decode(encoding, bytes, absl::MakeSpan(values)).ok()) state.SkipWithError("not decoded");
    benchmark::ClobberMemory();
  }
  Report(encoding, state);
}

BENCHMARK(BM_Encode)->DenseRange(2, kCompressionMax);
BENCHMARK(BM_Decode)->DenseRange(2, kCompressionMax);

// Checks, before anything is timed, that decoded values are close to the original ones. It leaves out kTopK, which
// drops values.
bool IsRight() {
  const std::vector<float> values = Wave();
  for (uint8_t number = 1; number < static_cast<uint8_t>(Compression::kTopK); ++number) {
    const Encoding encoding = {static_cast<Compression>(number), 0};
    std::vector<char> bytes(EncodedBytes(encoding, kValues));
    std::vector<float> decoded(kValues);
    if (!Encode(encoding, values, absl::MakeSpan(bytes)).ok()) return false;
    if (!Decode(encoding, bytes, absl::MakeSpan(decoded)).ok()) return false;
    for (size_t i = 0; i < kValues; ++i) {
      if (std::abs(decoded[i] - values[i]) > 0.08f) return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  if (!hooke::IsRight()) {
    std::fprintf(stderr, "a compression gives wrong values\n");
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
