#ifndef HOOKE_WIRE_FRAME_BUFFER_H_
#define HOOKE_WIRE_FRAME_BUFFER_H_

// Messages of wire/frame.h in gRPC's memory. Values are written directly into the memory that gRPC sends, and read
// directly from the memory that gRPC received, so they are copied at most once.

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "wire/frame.h"

namespace hooke {

// A message of values under construction. Movable. Its memory returns to its pool when gRPC has sent the message, or
// when the message is dropped.
class OutgoingFrame {
 public:
  OutgoingFrame(OutgoingFrame&& other) noexcept;
  OutgoingFrame& operator=(OutgoingFrame&&) = delete;
  ~OutgoingFrame();

  // Returns the memory of the values, which is uninitialized and aligned to 64 bytes. Fill it before Seal.
  absl::Span<char> payload() const;
  // Writes the header and returns the finished message. `header` must announce as many bytes as payload() has.
  grpc::ByteBuffer Seal(const ValuesHeader& header) &&;

 private:
  friend class FramePool;
  struct Memory;
  struct Shelf;
  OutgoingFrame(Memory* memory, uint64_t payload_bytes) : memory_(memory), payload_bytes_(payload_bytes) {}
  static void Return(void* memory);

  Memory* memory_;  // Owned; null after Seal.
  uint64_t payload_bytes_;
};

// Reuses memory for the messages of one stream, because fresh memory costs page faults. Thread-safe. Messages may
// outlive the pool.
class FramePool {
 public:
  FramePool();
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  OutgoingFrame Make(uint64_t payload_bytes);

 private:
  std::shared_ptr<OutgoingFrame::Shelf> shelf_;
};

// A received message.
class IncomingFrame {
 public:
  // Parses a message and reads its kind. INVALID_ARGUMENT as from ReadKind; INTERNAL if gRPC cannot return the bytes.
  static absl::StatusOr<IncomingFrame> Parse(const grpc::ByteBuffer& message);

  FrameKind kind() const { return kind_; }
  // Returns what DecodeOpening returns. Call it only for a kOpening.
  absl::StatusOr<v1::Sender> Opening() const;
  // Returns what DecodeValuesHeader returns. Call it only for a kValues.
  absl::StatusOr<ValuesHeader> Header() const;
  // Copies the encoded values to `payload`, even if they lie in several pieces. Call it after Header() was OK;
  // `payload` has the length that the header announces.
  void CopyPayload(absl::Span<char> payload) const;
  // Copies values of type kFloat32, which need no decoding. Call it as CopyPayload.
  void CopyValues(absl::Span<float> values) const;

 private:
  IncomingFrame(std::vector<grpc::Slice> slices, uint64_t bytes) : slices_(std::move(slices)), bytes_(bytes) {}
  // Returns the first `bytes` bytes, or all of a shorter message.
  std::string Start(uint64_t bytes) const;

  std::vector<grpc::Slice> slices_;
  uint64_t bytes_;
  FrameKind kind_ = FrameKind::kValues;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_FRAME_BUFFER_H_
