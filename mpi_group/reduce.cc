#include "mpi_group/reduce.h"

#include <algorithm>
#include <cstddef>

namespace hooke {
namespace {

template <typename Operation>
void Apply(absl::Span<const float> from, absl::Span<float> into, Operation operation) {
  const float* __restrict__ a = from.data();
  float* __restrict__ b = into.data();
  const size_t n = into.size();
  for (size_t i = 0; i < n; ++i) b[i] = operation(b[i], a[i]);
}

}  // namespace

void ReduceInto(ReduceOp op, absl::Span<const float> from, absl::Span<float> into) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean:
      return Apply(from, into, [](float a, float b) { return a + b; });
    case ReduceOp::kMin:
      return Apply(from, into, [](float a, float b) { return std::min(a, b); });
    case ReduceOp::kMax:
      return Apply(from, into, [](float a, float b) { return std::max(a, b); });
  }
}

void FinishReduction(ReduceOp op, int ranks, absl::Span<float> values) {
  if (op != ReduceOp::kMean) return;
  const float factor = 1.0f / static_cast<float>(ranks);
  for (float& value : values) value *= factor;
}

}  // namespace hooke
