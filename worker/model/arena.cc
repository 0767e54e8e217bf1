#include "worker/model/arena.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Rounds the length of a part up, so that the part after it is aligned too.
uint64_t Aligned(uint64_t values) {
  constexpr uint64_t kStep = kArenaAlignment / sizeof(float);
  return (values + kStep - 1) / kStep * kStep;
}

uint64_t GradientsOf(const Arena::Sizes& sizes) { return sizes.gradients.value_or(sizes.parameters); }

}  // namespace

absl::StatusOr<ArenaMemory> AllocateOnHeap(uint64_t values) {
  constexpr uint64_t kMostValues = uint64_t{1} << 40;
  // aligned_alloc needs a multiple of the alignment. An empty arena still gets an address.
  uint64_t bytes = (values * sizeof(float) / kArenaAlignment + 1) * kArenaAlignment;
  void* memory = values > kMostValues ? nullptr : std::aligned_alloc(kArenaAlignment, bytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", values, " float values of the model; use a smaller one or a larger node"));
  }
  std::memset(memory, 0, bytes);
  return ArenaMemory{absl::MakeSpan(static_cast<float*>(memory), values), std::shared_ptr<void>(memory, std::free)};
}

absl::StatusOr<Arena> Arena::Make(const Sizes& sizes, const ArenaAllocator& allocate) {
  const uint64_t values =
      Aligned(sizes.parameters + sizes.buffers) + Aligned(GradientsOf(sizes)) + Aligned(sizes.statistics);
  absl::StatusOr<ArenaMemory> memory = allocate(values);
  if (!memory.ok()) return memory.status();
  if (memory->values.size() < values || reinterpret_cast<uintptr_t>(memory->values.data()) % kArenaAlignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat("memory for the arena must hold ", values,
                                                   " values at a multiple of ", kArenaAlignment, " bytes; got ",
                                                   memory->values.size(), " values"));
  }
  return Arena(sizes, *std::move(memory));
}

Arena::Arena(const Sizes& sizes, ArenaMemory memory) : sizes_(sizes), owner_(std::move(memory.owner)) {
  const uint64_t gradients = Aligned(sizes.parameters + sizes.buffers);
  const uint64_t statistics = gradients + Aligned(GradientsOf(sizes));
  vector_ = memory.values.first(sizes.parameters + sizes.buffers);
  gradients_ = memory.values.subspan(gradients, GradientsOf(sizes));
  statistics_ = memory.values.subspan(statistics, sizes.statistics);
}

}  // namespace hooke
