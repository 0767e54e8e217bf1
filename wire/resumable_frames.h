#ifndef HOOKE_WIRE_RESUMABLE_FRAMES_H_
#define HOOKE_WIRE_RESUMABLE_FRAMES_H_

// Messages of wire/frame.h over a connected stream socket, for a server with few threads. No call waits long for the
// peer: it says that the message is not complete, and the same call goes on with it later. FrameSocket is for callers
// that may block.

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "wire/frame.h"

namespace hooke {

// Calls come from one thread at a time; any thread may call Shutdown. Errors are those of FrameSocket: UNAVAILABLE if
// the connection is broken, closed or shut down, and INVALID_ARGUMENT if the peer sent bytes that are no message of
// values. After an error the connection must not be used further.
class ResumableFrames {
 public:
  // Takes ownership of `descriptor`, a connected socket that blocks. `patience` is how long a call with
  // Waiting::kBriefly waits for one piece of a message.
  ResumableFrames(int descriptor, absl::Duration patience);
  ~ResumableFrames();
  ResumableFrames(const ResumableFrames&) = delete;
  ResumableFrames& operator=(const ResumableFrames&) = delete;

  // A wait inside the call costs less than one outside of it. kBriefly: the call may wait for up to 64 pieces.
  enum class Waiting { kNever, kBriefly };
  // Receives the header of a message. nullopt: not all of it has arrived.
  absl::StatusOr<std::optional<ValuesHeader>> ReceiveHeader(Waiting waiting);
  // Receives the payload that follows a header. False: not all of it has arrived. Pass the same memory again.
  absl::StatusOr<bool> ReceivePayload(absl::Span<char> payload, Waiting waiting);
  // Sends a message. False: the peer must read first. Pass the same message again.
  absl::StatusOr<bool> SendPayload(const ValuesHeader& header, absl::Span<const char> payload, Waiting waiting);
  // Returns whether the last call has moved some bytes but not all.
  bool is_within() const { return done_ > 0; }

  int descriptor() const { return descriptor_; }
  // Ends waits of a running call. Later calls fail, except that bytes which had arrived may still be received.
  void Shutdown();
  // Gives the descriptor to the caller. No other call may come after this one.
  int Release();

 private:
  absl::StatusOr<bool> Receive(absl::Span<char> bytes, Waiting waiting);

  int descriptor_;
  size_t done_ = 0;  // Bytes of the current header, payload or outgoing message that have been moved.
  char header_[kValuesHeaderBytes] = {};
};

}  // namespace hooke

#endif  // HOOKE_WIRE_RESUMABLE_FRAMES_H_
