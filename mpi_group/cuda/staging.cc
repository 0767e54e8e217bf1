#include "mpi_group/cuda/staging.h"

#include <utility>

#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_reduce.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(uint64_t chunk_bytes) {
  auto staging = std::make_unique<Staging>();
  absl::StatusOr<Stream> stream = MakeStream();
  if (!stream.ok()) return stream.status();
  staging->stream_ = *std::move(stream);
  for (Slot& slot : staging->slots_) {
    for (PinnedMemory* memory : {&slot.outgoing, &slot.incoming}) {
      absl::StatusOr<PinnedMemory> pinned = AllocatePinnedMemory(chunk_bytes);
      if (!pinned.ok()) return pinned.status();
      *memory = *std::move(pinned);
    }
    absl::StatusOr<DeviceMemory> received = AllocateDeviceMemory(chunk_bytes);
    if (!received.ok()) return received.status();
    slot.received = *std::move(received);
    for (Event* event : {&slot.sent, &slot.used}) {
      absl::StatusOr<Event> made = MakeEvent();
      if (!made.ok()) return made.status();
      *event = *std::move(made);
    }
  }
  return staging;
}

absl::Status Staging::StartOutgoing(uint64_t index, const TensorList& values) {
  Slot& slot = SlotOf(index);
  slot.outgoing_bytes = 0;
  for (absl::Span<char> piece : values.pieces()) {
    absl::Status status = CudaStatus(cudaMemcpyAsync(slot.outgoing.get() + slot.outgoing_bytes, piece.data(),
                                                     piece.size(), cudaMemcpyDeviceToHost, stream_.get()),
                                     "copy from the device");
    if (!status.ok()) return status;
    slot.outgoing_bytes += piece.size();
  }
  return CudaStatus(cudaEventRecord(slot.sent.get(), stream_.get()), "cudaEventRecord");
}

absl::StatusOr<absl::Span<const char>> Staging::AwaitOutgoing(uint64_t index, absl::Time deadline) {
  const Slot& slot = SlotOf(index);
  absl::Status status = AwaitEvent(slot.sent.get(), deadline);
  if (!status.ok()) return status;
  return absl::MakeConstSpan(slot.outgoing.get(), slot.outgoing_bytes);
}

absl::StatusOr<absl::Span<char>> Staging::IncomingRoom(uint64_t index, uint64_t bytes, absl::Time deadline) {
  const Slot& slot = SlotOf(index);
  absl::Status status = AwaitEvent(slot.used.get(), deadline);
  if (!status.ok()) return status;
  return absl::MakeSpan(slot.incoming.get(), bytes);
}

absl::Status Staging::StartWriting(uint64_t index, const TensorList& values) {
  const Slot& slot = SlotOf(index);
  uint64_t done = 0;
  for (absl::Span<char> piece : values.pieces()) {
    absl::Status status = CudaStatus(
        cudaMemcpyAsync(piece.data(), slot.incoming.get() + done, piece.size(), cudaMemcpyHostToDevice, stream_.get()),
        "copy to the device");
    if (!status.ok()) return status;
    done += piece.size();
  }
  return CudaStatus(cudaEventRecord(slot.used.get(), stream_.get()), "cudaEventRecord");
}

absl::Status Staging::StartReducing(uint64_t index, const TensorList& values, const Reduction& reduction) {
  const Slot& slot = SlotOf(index);
  absl::Status status = CudaStatus(
      cudaMemcpyAsync(slot.received.get(), slot.incoming.get(), values.bytes(), cudaMemcpyHostToDevice, stream_.get()),
      "copy to the device");
  uint64_t done = 0;
  for (absl::Span<char> piece : values.pieces()) {
    DeviceReduction what;
    what.type = values.type();
    what.op = reduction.op;
    what.mean_of = reduction.mean_of;
    what.sources = 2;
    what.source[0] = piece.data();
    what.source[1] = slot.received.get() + done;
    what.destinations = 1;
    what.destination[0] = piece.data();
    what.values = piece.size() / SizeOf(values.type());
    status.Update(CudaStatus(static_cast<cudaError_t>(LaunchReduce(what, stream_.get())), "reduction"));
    done += piece.size();
  }
  if (!status.ok()) return status;
  return CudaStatus(cudaEventRecord(slot.used.get(), stream_.get()), "cudaEventRecord");
}

absl::Status Staging::AwaitAll(absl::Time deadline) {
  return AwaitStream(stream_.get(), deadline, [] { return absl::OkStatus(); });
}

}  // namespace hooke
