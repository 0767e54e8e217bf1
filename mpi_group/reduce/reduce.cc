#include "mpi_group/reduce/reduce.h"

#include "mpi_group/reduce/reduce_dispatch.h"
#include "mpi_group/reduce/reduce_variant.h"

namespace hooke {
namespace {

// The tables of a variant are indexed by these enums.
static_assert(static_cast<int>(DataType::kInt64) == ReduceVariant::kTypes - 1, "A type has no kernels.");
static_assert(static_cast<int>(ReduceOp::kMax) == ReduceVariant::kOps - 1, "A reduction has no kernels.");

const ReduceVariant& Best() {
  static const ReduceVariant* const best = SupportedReduceVariants().front();
  return *best;
}

}  // namespace

void Reduce(const Reduction& reduction, absl::Span<const char* const> sources, absl::Span<char* const> destinations,
            uint64_t values) {
  const bool undivided = reduction.op == ReduceOp::kMean && reduction.mean_of == 0;
  const ReduceOp op = undivided ? ReduceOp::kSum : reduction.op;
  Best().reduce[static_cast<int>(reduction.type)][static_cast<int>(op)](
      sources.data(), sources.size(), destinations.data(), destinations.size(), values, reduction.mean_of);
}

void ReduceWide(DataType type, absl::Span<const char* const> sources, absl::Span<float> to) {
  const auto kernel = type == DataType::kBFloat16 ? Best().wide_sum_bfloat16 : Best().wide_sum_float16;
  char* const destination = reinterpret_cast<char*>(to.data());
  kernel(sources.data(), sources.size(), &destination, 1, to.size(), /*mean_of=*/0);
}

void FinishReduction(DataType type, ReduceOp op, int ranks, absl::Span<char> values) {
  if (op != ReduceOp::kMean) return;
  const char* const sources[] = {values.data()};
  char* const destinations[] = {values.data()};
  Reduce({type, op, ranks}, sources, destinations, values.size() / SizeOf(type));
}

void Widen(DataType type, absl::Span<const char> from, absl::Span<float> to) {
  const auto kernel = type == DataType::kBFloat16 ? Best().widen_bfloat16 : Best().widen_float16;
  kernel(from.data(), reinterpret_cast<char*>(to.data()), to.size());
}

void Narrow(DataType type, absl::Span<const float> from, absl::Span<char> to) {
  const auto kernel = type == DataType::kBFloat16 ? Best().narrow_bfloat16 : Best().narrow_float16;
  kernel(reinterpret_cast<const char*>(from.data()), to.data(), from.size());
}

}  // namespace hooke
