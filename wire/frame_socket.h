#ifndef HOOKE_WIRE_FRAME_SOCKET_H_
#define HOOKE_WIRE_FRAME_SOCKET_H_

// Messages of wire/frame.h over a connected stream socket, without gRPC: no framing but their own, and values go
// between the kernel and the caller's memory. Used by the servers' direct exchanges and the ranks'.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "wire/frame.h"

namespace hooke {

// One thread sends, another receives at the same time; Shutdown may come from any. Calls block; a timeout is time that
// passes, whatever anybody does to the machine's clock. UNAVAILABLE: the connection is broken, closed or shut down.
// INVALID_ARGUMENT: what came is no message of the format; the connection is of no more use.
class FrameSocket {
 public:
  // Takes the descriptor of a connected socket. A peer that is gone without a word is noticed after about 20 seconds.
  // Each send takes as long as it takes, but no longer than `send_timeout`: a peer that reads too slowly is then
  // UNAVAILABLE.
  explicit FrameSocket(int descriptor, absl::Duration send_timeout = absl::InfiniteDuration());
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  absl::Status SendOpening(const v1::Sender& sender);
  // `payload`, the encoded values, has the length that the header announces, and is free again after the call.
  absl::Status SendPayload(const ValuesHeader& header, absl::Span<const char> payload);
  // The last message of a server that refuses something. Returns when the peer has closed, after `timeout` at the
  // latest.
  void SendRefusal(const absl::Status& refusal, absl::Duration timeout);

  // Waits no longer than `timeout` for all of it, whose end is UNAVAILABLE. INVALID_ARGUMENT also: a job id longer than
  // kJobIdBytesMax, which is not waited for.
  absl::StatusOr<v1::Sender> ReceiveOpening(absl::Duration timeout);
  // The header of a message of values, which are next; or what came in its place, the last message.
  struct Header {
    absl::Status refusal;
    ValuesHeader values;  // Where `refusal` is OK.
  };
  absl::StatusOr<Header> ReceiveHeader();
  absl::Status ReceivePayload(absl::Span<char> payload);

  // All calls, now and later, fail.
  void Shutdown();

 private:
  // Deadlines are by a steady clock, not absl::Now().
  absl::Status Send(absl::Span<const char> first, absl::Span<const char> second, absl::Time deadline);
  absl::Status Receive(absl::Span<char> bytes, absl::Time deadline = absl::InfiniteFuture());

  const int descriptor_;
  const absl::Duration send_timeout_;
};

// Connects to a socket of the abstract namespace of this host: `name` without the leading zero byte. UNAVAILABLE.
absl::StatusOr<int> ConnectLocally(const std::string& name);
// Connects to host:port. UNAVAILABLE; also after `timeout`, or when `cancelled` says so, which is asked every 50 ms.
absl::StatusOr<int> ConnectTcp(const std::string& host, uint16_t port, absl::Duration timeout,
                               const std::function<bool()>& cancelled);

}  // namespace hooke

#endif  // HOOKE_WIRE_FRAME_SOCKET_H_
