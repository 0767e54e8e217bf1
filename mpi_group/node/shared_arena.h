#ifndef HOOKE_MPI_GROUP_NODE_SHARED_ARENA_H_
#define HOOKE_MPI_GROUP_NODE_SHARED_ARENA_H_

// An arena: memory that the ranks of a node share, with one vector of each rank. Collectives work in place in it
// (node_collectives.h). Tests lay arenas over ordinary memory that threads share.

#include <algorithm>
#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

class SharedArena {
 public:
  struct Layout {
    int rank = 0;
    int ranks = 1;
    char* base = nullptr;         // 64-byte aligned; outlives the arena.
    uint64_t bytes_per_rank = 0;  // A multiple of 64, at least `bytes`.
    uint64_t bytes = 0;           // Size of a rank's vector.
    uint64_t number = 0;          // The arena's number in its group; the same on all ranks.
  };

  explicit SharedArena(const Layout& layout) : layout_(layout) {}

  int rank() const { return layout_.rank; }
  int ranks() const { return layout_.ranks; }
  uint64_t number() const { return layout_.number; }
  absl::Span<char> ValuesOf(int rank) const { return {layout_.base + layout_.bytes_per_rank * rank, layout_.bytes}; }
  // The address in another rank's vector of the place that `own` has in this rank's vector.
  char* PlaceOf(int rank, const char* own) const {
    return layout_.base + layout_.bytes_per_rank * rank + (own - ValuesOf(layout_.rank).data());
  }

  // True if all of a list's values lie in this rank's own vector.
  bool Contains(const TensorList& values) const {
    const absl::Span<char> own = ValuesOf(rank());
    const std::less_equal<const char*> not_after;
    return std::all_of(values.pieces().begin(), values.pieces().end(), [&](absl::Span<char> piece) {
      return not_after(own.data(), piece.data()) && not_after(piece.data() + piece.size(), own.data() + own.size());
    });
  }

  // A hash of the places of a list's values in the arena, almost certainly different for different places.
  uint64_t Places(const TensorList& values) const {
    uint64_t hash = number() + 1;
    for (absl::Span<char> piece : values.pieces()) {
      const uint64_t place = piece.data() - ValuesOf(rank()).data();
      for (uint64_t value : {place, uint64_t{piece.size()}}) {
        hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
      }
    }
    return hash;
  }

 private:
  const Layout layout_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_SHARED_ARENA_H_
