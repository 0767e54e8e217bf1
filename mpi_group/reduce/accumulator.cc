#include "mpi_group/reduce/accumulator.h"

#include "mpi_group/reduce/reduce.h"
#include "mpi_group/reduce/reduce_list.h"

namespace hooke {
namespace {

bool IsSum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kMean; }

}  // namespace

// The sum of two ranks is rounded only once anyway.
bool NeedsWideSums(DataType type, ReduceOp op, int ranks) { return SizeOf(type) == 2 && IsSum(op) && ranks > 2; }

Accumulator::Accumulator(const TensorList& values, ReduceOp op, int ranks, Scratch& scratch)
    : values_(values), list_(values) {
  if (!NeedsWideSums(values.type(), op, ranks)) return;
  const uint64_t bytes = values.size() * sizeof(float);
  if (scratch.working.size() < bytes) scratch.working.resize(bytes);
  const absl::Span<float> wide(reinterpret_cast<float*>(scratch.working.data()), values.size());
  list_ = TensorList(wide);
  uint64_t begin = 0;
  for (absl::Span<char> piece : values.pieces()) {
    const uint64_t count = piece.size() / SizeOf(values.type());
    Widen(values.type(), piece, wide.subspan(begin, count));
    begin += count;
  }
}

void Accumulator::Store() {
  if (list_.type() == values_.type() || list_.empty()) return;
  const absl::Span<const float> wide(reinterpret_cast<const float*>(list_.pieces().front().data()), list_.size());
  NarrowIntoList(wide, values_);
}

}  // namespace hooke
