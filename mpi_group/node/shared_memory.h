#ifndef HOOKE_MPI_GROUP_NODE_SHARED_MEMORY_H_
#define HOOKE_MPI_GROUP_NODE_SHARED_MEMORY_H_

// Memory that all ranks of a group map: an unnamed file in /dev/shm, which the others open through the first rank's
// /proc/PID/fd. So nothing is left behind, whenever and however the ranks end. Freeing it never waits for another rank,
// as MPI_Win_free would.
//
// A rank in a PID namespace of its own, for instance, cannot open the file that way. In that case the file has a name
// until all ranks have opened it. If the first rank is killed in that moment, an empty file "/dev/shm/hooke-PID-..."
// stays behind.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class SharedMemory {
 public:
  // Collective; all ranks pass the same size, > 0. The memory is zeroed, and reserved, so that touching it never fails.
  // All ranks get the following two errors together, and the transport may still be used afterwards.
  // FAILED_PRECONDITION: the ranks are not on one node, or one of them cannot open shared memory; the message says why,
  // if this rank knows. RESOURCE_EXHAUSTED: the node has too little shared memory left.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Create(Transport& transport, uint64_t bytes_per_rank,
                                                              absl::Time deadline);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // The ranks' regions follow each other. Each is a whole number of pages, at least the size asked for. Regions of a
  // huge page or more use huge pages if the system has them.
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
