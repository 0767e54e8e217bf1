#ifndef HOOKE_WORKER_MODEL_ARENA_H_
#define HOOKE_WORKER_MODEL_ARENA_H_

// The flat memory of a rank: the job's vector [parameters | float buffers], then the gradients, then a few statistics.
// The model computes in the arena, and collectives and exchanges read and write it, so float32 values are not packed or
// unpacked. It is one piece of memory, so that the ranks of a node can share it.
//
// Spans are valid as long as the arena, or a copy of it, lives. Not thread-safe: the trainer hands it to one user at a
// time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

// Memory for floats: zeroed, and aligned to kArenaAlignment bytes. It lives at least until the last copy of `owner` is
// gone.
struct ArenaMemory {
  absl::Span<float> values;
  std::shared_ptr<void> owner;
};

inline constexpr uint64_t kArenaAlignment = 64;

// Allocates an arena's memory: on the heap, or in memory that the ranks of a node share (Group::AllocateShared).
using ArenaAllocator = std::function<absl::StatusOr<ArenaMemory>(uint64_t values)>;

// Allocates on the heap. RESOURCE_EXHAUSTED if there is no memory; the message names the size.
absl::StatusOr<ArenaMemory> AllocateOnHeap(uint64_t values);

class Arena {
 public:
  struct Sizes {
    uint64_t parameters = 0;
    uint64_t buffers = 0;
    // Values that are reduced along with the gradients, such as the loss.
    uint64_t statistics = 0;
    // By default there is one gradient for each parameter. A model with 16-bit parameters keeps some elsewhere
    // (worker/training/narrow_tensors.h).
    std::optional<uint64_t> gradients = std::nullopt;
  };

  // Makes an arena whose values are all zero. INVALID_ARGUMENT: the allocator's memory is too short or not aligned.
  // Other errors are the allocator's.
  static absl::StatusOr<Arena> Make(const Sizes& sizes, const ArenaAllocator& allocate = AllocateOnHeap);

  // The job's vector, which groups exchange with the center.
  absl::Span<float> vector() const { return vector_; }
  absl::Span<float> parameters() const { return vector_.first(sizes_.parameters); }
  absl::Span<float> buffers() const { return vector_.subspan(sizes_.parameters); }
  // In the order of the parameters.
  absl::Span<float> gradients() const { return gradients_; }
  absl::Span<float> statistics() const { return statistics_; }

 private:
  Arena(const Sizes& sizes, ArenaMemory memory);

  Sizes sizes_;
  std::shared_ptr<void> owner_;
  absl::Span<float> vector_;
  absl::Span<float> gradients_;
  absl::Span<float> statistics_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_ARENA_H_
