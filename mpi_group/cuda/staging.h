#ifndef HOOKE_MPI_GROUP_CUDA_STAGING_H_
#define HOOKE_MPI_GROUP_CUDA_STAGING_H_

// Copies chunks between device memory and the page-locked host memory of a Transport's messages.

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

// One rank's slots for chunks on their way, used in turn. All work goes to one stream, in order, so a chunk that is
// read after another was written sees the new values. A slot is reused only when its copies are done.
class Staging {
 public:
  static constexpr int kSlots = 4;

  // Allocates the slots' pinned host memory, and their memory on the current CUDA device.
  static absl::StatusOr<std::unique_ptr<Staging>> Create(uint64_t chunk_bytes);

  // Starts to copy a list of at most chunk_bytes bytes to outgoing slot `index` % kSlots. At most kSlots copies may be
  // under way.
  absl::Status StartOutgoing(uint64_t index, const TensorList& values);
  // Waits for the copy that StartOutgoing(index) started, and returns its bytes.
  absl::StatusOr<absl::Span<const char>> AwaitOutgoing(uint64_t index, absl::Time deadline);

  // Returns room for an incoming message of `bytes` bytes, after waiting for the slot's last use to end.
  absl::StatusOr<absl::Span<char>> IncomingRoom(uint64_t index, uint64_t bytes, absl::Time deadline);
  // Starts to copy the bytes received in incoming slot `index` % kSlots to `values`.
  absl::Status StartWriting(uint64_t index, const TensorList& values);
  // Starts to reduce the bytes received in incoming slot `index` % kSlots into `values` on the device.
  absl::Status StartReducing(uint64_t index, const TensorList& values, const Reduction& reduction);

  // The stream that does all of this work, in order.
  cudaStream_t stream() const { return stream_.get(); }

  // Waits until the device has done all work.
  absl::Status AwaitAll(absl::Time deadline);

 private:
  struct Slot {
    PinnedMemory outgoing;
    PinnedMemory incoming;
    DeviceMemory received;  // A copy of `incoming` on the device, for reductions.
    Event sent;
    Event used;
    uint64_t outgoing_bytes = 0;
  };

  Slot& SlotOf(uint64_t index) { return slots_[index % kSlots]; }

  std::array<Slot, kSlots> slots_;
  Stream stream_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_STAGING_H_
