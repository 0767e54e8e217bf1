#ifndef HOOKE_MPI_GROUP_CUDA_STAGING_H_
#define HOOKE_MPI_GROUP_CUDA_STAGING_H_

// Chunks of device memory on their way to and from the messages of a Transport. Used by staged_group.cc.

#include <cuda_runtime_api.h>

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// One rank's slots, used in turn. All work is given to one stream, in order; so a chunk that is read after another was
// written sees it. A slot is used again only when its copies are done.
class Staging {
 public:
  static constexpr int kSlots = 4;

  // On the current device.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(uint64_t chunk_bytes);

  // Begins to copy a list of at most chunk_bytes to outgoing slot `index` % kSlots; at most kSlots at once.
  absl::Status StartOutgoing(uint64_t index, const TensorList& values);
  // The bytes, once they are there.
  absl::StatusOr<absl::Span<const char>> AwaitOutgoing(uint64_t index, absl::Time deadline);

  // Room for an incoming message of `bytes`, once its last use is over.
  absl::StatusOr<absl::Span<char>> IncomingRoom(uint64_t index, uint64_t bytes, absl::Time deadline);
  // Begins to write what has come there to `values`, or to reduce it into them on the device.
  absl::Status StartWriting(uint64_t index, const TensorList& values);
  absl::Status StartReducing(uint64_t index, const TensorList& values, const Reduction& reduction);

  // Where all of that is done, in order.
  cudaStream_t stream() const { return stream_.get(); }

  // Until the device has done all of it.
  absl::Status AwaitAll(absl::Time deadline);

 private:
  struct Slot {
    PinnedMemory outgoing;
    PinnedMemory incoming;
    DeviceMemory received;  // What came, next to the values that it is reduced into.
    Event sent;
    Event used;
    uint64_t outgoing_bytes = 0;
  };

  Slot& SlotOf(uint64_t index) { return slots_[index % kSlots]; }
  static absl::Status AwaitEvent(const Event& event, absl::Time deadline);

  std::array<Slot, kSlots> slots_;
  Stream stream_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_STAGING_H_
