#ifndef HOOKE_MPI_GROUP_SHARED_ARENA_H_
#define HOOKE_MPI_GROUP_SHARED_ARENA_H_

// A vector of each rank in memory that all ranks reach, and the collectives that work on them in place. Used by
// TransportGroup; tests lay arenas over ordinary memory shared by threads.
//
// A region of memory per rank: a seat (where the rank says how far it is), then its values. Calls of one rank's arena
// come from one thread at a time. Errors are a Transport's: DEADLINE_EXCEEDED names all ranks that are missing,
// UNAVAILABLE a rank that left; INVALID_ARGUMENT, on all ranks: they call different collectives.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

class SharedArena {
 public:
  struct Layout {
    int rank = 0;
    int ranks = 1;
    char* base = nullptr;         // Zeroed before the first rank makes its arena; 64-byte aligned; outlives the arena.
    uint64_t bytes_per_rank = 0;  // A multiple of 64, at least RegionBytes(values).
    uint64_t values = 0;
  };
  static uint64_t RegionBytes(uint64_t values);

  explicit SharedArena(const Layout& layout) : layout_(layout) {}
  // Tells the other ranks that this one has left.
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  int rank() const { return layout_.rank; }
  int ranks() const { return layout_.ranks; }
  absl::Span<float> ValuesOf(int rank) const;
  // Whether all of a list's values lie in this rank's own vector.
  bool Contains(const TensorList& values) const;

  // Returns OK after all ranks have called it. What they wrote before is then visible to all.
  absl::Status Barrier(absl::Time deadline);
  // A barrier that also checks that all ranks passed the same number, which stands for what they are about to do.
  absl::Status Enter(uint64_t purpose, absl::Time deadline);

 private:
  struct Seat;

  Seat& SeatOf(int rank) const;
  absl::Status AwaitArrival(int peer, absl::Time deadline);
  absl::Status MissingRanks() const;

  const Layout layout_;
  uint32_t round_ = 0;
};

// Rank r reduces slice r of EvenParts directly from all ranks' values, in rank order, and writes the result to all:
// each value is read once per rank and written once per rank; no messages, two barriers. `values` lies in the arena, at
// the same places on all ranks. After OK all ranks hold bitwise the same; after an error the values are unspecified.
absl::Status SharedMemoryAllReduce(SharedArena& arena, const TensorList& values, ReduceOp op, absl::Time deadline);

// Rank r writes parts[r] of its values to all other ranks; two barriers. Parts as for RingAllGather.
absl::Status SharedMemoryAllGather(SharedArena& arena, const TensorList& values, absl::Span<const ValueRange> parts,
                                   absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SHARED_ARENA_H_
