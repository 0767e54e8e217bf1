#ifndef HOOKE_MPI_GROUP_NODE_SHARED_MEMORY_H_
#define HOOKE_MPI_GROUP_NODE_SHARED_MEMORY_H_

// Memory that all ranks of a group map: POSIX shared memory, without a name once all have it, so that from then on
// nothing is left behind however the ranks end, and freeing it never waits for another rank (as MPI_Win_free would).
// Killed before, in the moment between making the name and removing it, the first rank leaves "/dev/shm/hooke-PID-..."
// behind: a name of an empty object, which takes no memory. Used by TransportGroup for its arenas.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class SharedMemory {
 public:
  // Collective; all ranks pass the same size, > 0. Zeroed, and reserved: touching it never fails. After an error the
  // transport may still be used if the code is one of these two, which all ranks get together: FAILED_PRECONDITION: the
  // ranks are not on one node, or one of them cannot open shared memory; the message says why, if this rank knows.
  // RESOURCE_EXHAUSTED: the node has not that much shared memory left.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Create(Transport& transport, uint64_t bytes_per_rank,
                                                              absl::Time deadline);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // The ranks' regions follow each other, each a whole number of pages of at least the size asked for; huge pages,
  // where the system has them, if it is as much as one.
  char* base() const { return base_; }
  uint64_t bytes_per_rank() const { return bytes_per_rank_; }

 private:
  SharedMemory(char* base, uint64_t bytes_per_rank, int ranks)
      : base_(base), bytes_per_rank_(bytes_per_rank), ranks_(ranks) {}

  char* const base_;
  const uint64_t bytes_per_rank_;
  const int ranks_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_SHARED_MEMORY_H_
