#ifndef HOOKE_MPI_GROUP_NODE_SHARED_MEMORY_H_
#define HOOKE_MPI_GROUP_NODE_SHARED_MEMORY_H_

// Memory that all ranks of a group map: a file of /dev/shm that never has a name and is opened through the first rank's
// /proc/PID/fd. So nothing is left behind however and whenever the ranks end, and freeing it never waits for another
// rank (as MPI_Win_free would). Where a rank cannot open it that way, as in a PID namespace of its own, it has a name
// until all have it: killed in that moment, the first rank leaves "/dev/shm/hooke-PID-...", which is empty. Used by
// TransportGroup for its arenas.

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
