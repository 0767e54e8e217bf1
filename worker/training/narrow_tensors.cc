#include "worker/training/narrow_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi_group/reduce/reduce.h"

namespace hooke {
namespace {

constexpr uint64_t kNarrowBytes = 2;

// Returns the number of floats that hold `values` 16-bit values, and reach to the next multiple of the alignment.
uint64_t FloatsFor(uint64_t values) {
  return (values * kNarrowBytes + kArenaAlignment - 1) / kArenaAlignment * (kArenaAlignment / sizeof(float));
}

absl::Span<char> BytesAt(const ArenaMemory& memory, uint64_t floats, uint64_t values) {
  return {reinterpret_cast<char*>(memory.values.data() + floats), values * kNarrowBytes};
}

// FollowValues() for a block of at most kBlock values.
constexpr size_t kBlock = 1024;
void FollowBlock(DataType type, absl::Span<const char> values, absl::Span<float> master) {
  const size_t count = master.size();
  uint16_t rounded[kBlock];
  const absl::Span<char> rounded_bytes(reinterpret_cast<char*>(rounded), count * kNarrowBytes);
  Narrow(type, master, rounded_bytes);
  if (std::memcmp(rounded, values.data(), values.size()) == 0) return;
  float was[kBlock];
  float is[kBlock];
  float moved[kBlock];
  Widen(type, rounded_bytes, absl::MakeSpan(was, count));
  Widen(type, values, absl::MakeSpan(is, count));
  for (size_t i = 0; i < count; ++i) moved[i] = master[i] + (is[i] - was[i]);
  uint16_t moved_rounded[kBlock];
  Narrow(type, absl::MakeConstSpan(moved, count), {reinterpret_cast<char*>(moved_rounded), count * kNarrowBytes});
  for (size_t i = 0; i < count; ++i) {
    uint16_t value;
    std::memcpy(&value, values.data() + i * kNarrowBytes, kNarrowBytes);
    if (rounded[i] == value) continue;
    master[i] = moved_rounded[i] == value ? moved[i] : is[i];
  }
}

}  // namespace

void FollowValues(DataType type, absl::Span<const char> values, absl::Span<float> master) {
  for (size_t done = 0; done < master.size(); done += kBlock) {
    const size_t count = std::min(kBlock, master.size() - done);
    FollowBlock(type, values.subspan(done * kNarrowBytes, count * kNarrowBytes), master.subspan(done, count));
  }
}

Arena::Sizes ArenaSizesOf(absl::Span<const TypedTensor> tensors, bool widens, uint64_t statistics) {
  Arena::Sizes sizes;
  sizes.statistics = statistics;
  uint64_t gradients = 0;
  for (const TypedTensor& tensor : tensors) {
    (tensor.parameter ? sizes.parameters : sizes.buffers) += tensor.values;
    if (tensor.parameter && (widens || tensor.type == DataType::kFloat32)) gradients += tensor.values;
  }
  sizes.gradients = gradients;
  return sizes;
}

absl::StatusOr<std::unique_ptr<NarrowTensors>> NarrowTensors::Make(absl::Span<const TypedTensor> tensors, bool widens,
                                                                   const Arena& arena, const ArenaAllocator& allocate) {
  uint64_t values = 0;
  uint64_t gradients = 0;
  for (const TypedTensor& tensor : tensors) {
    if (tensor.type == DataType::kFloat32) continue;
    values += FloatsFor(tensor.values);
    if (tensor.parameter) gradients += FloatsFor(tensor.values);
  }
  std::unique_ptr<NarrowTensors> made(new NarrowTensors(arena));
  // Only gradients are reduced as 16-bit values, so only they need memory that the ranks share. That allocation is
  // collective, so it comes first: a rank whose heap is full must not leave the others waiting in it.
  absl::StatusOr<ArenaMemory> shared = allocate(gradients);
  if (!shared.ok()) return shared.status();
  absl::StatusOr<ArenaMemory> own = AllocateOnHeap(values);
  if (!own.ok()) return own.status();
  made->values_ = *std::move(own);
  made->gradient_memory_ = *std::move(shared);
  made->Arrange(tensors, widens);
  return made;
}

void NarrowTensors::Arrange(absl::Span<const TypedTensor> tensors, bool widens) {
  absl::Span<float> vector = arena_.vector();
  absl::Span<float> wide = arena_.gradients();
  uint64_t values_at = 0;
  uint64_t gradients_at = 0;
  for (const TypedTensor& tensor : tensors) {
    const bool narrow = tensor.type != DataType::kFloat32;
    const absl::Span<float> master = vector.first(tensor.values);
    vector.remove_prefix(tensor.values);
    absl::Span<float> wide_gradient;
    if (tensor.parameter && (widens || !narrow)) {
      wide_gradient = wide.first(tensor.values);
      wide.remove_prefix(tensor.values);
    }
    TensorPlace place = {MutableBytesOf(master), MutableBytesOf(wide_gradient)};
    if (narrow) {
      place.values = BytesAt(values_, values_at, tensor.values);
      values_at += FloatsFor(tensor.values);
      place.gradient = {};
      if (tensor.parameter) place.gradient = BytesAt(gradient_memory_, gradients_at, tensor.values);
      narrow_.push_back({tensor.type, tensor.parameter, place.values, master, place.gradient, wide_gradient});
    }
    places_.push_back(place);
    if (!tensor.parameter) continue;
    gradients_.push_back({tensor.type, place.gradient});
    if (!narrow) continue;
    const uint64_t floats = FloatsFor(tensor.values);
    gradients_.back().bytes = BytesAt(gradient_memory_, gradients_at, floats * (sizeof(float) / kNarrowBytes));
    gradients_at += floats;
  }
}

void NarrowTensors::Gather() {
  for (const Tensor& tensor : narrow_) FollowValues(tensor.type, tensor.values, tensor.master);
}

void NarrowTensors::Scatter() {
  for (const Tensor& tensor : narrow_) Narrow(tensor.type, tensor.master, tensor.values);
}

void NarrowTensors::GatherBuffers() {
  for (const Tensor& tensor : narrow_) {
    if (!tensor.parameter) FollowValues(tensor.type, tensor.values, tensor.master);
  }
}

void NarrowTensors::ScatterBuffers() {
  for (const Tensor& tensor : narrow_) {
    if (!tensor.parameter) Narrow(tensor.type, tensor.master, tensor.values);
  }
}

void NarrowTensors::WidenGradients() {
  for (const Tensor& tensor : narrow_) {
    if (tensor.parameter) Widen(tensor.type, tensor.gradient, tensor.wide_gradient);
  }
}

}  // namespace hooke
