#ifndef HOOKE_WIRE_FRAME_SOCKET_H_
#define HOOKE_WIRE_FRAME_SOCKET_H_

// Messages of wire/frame.h over a connected stream socket, without gRPC. They need no other framing, and values move
// directly between the kernel and the caller's memory.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "wire/frame.h"

namespace hooke {

// One thread may send while another receives; any thread may call Shutdown. Calls block; timeouts do not depend on the
// machine's wall clock. UNAVAILABLE: the connection is broken, closed or shut down. INVALID_ARGUMENT: the peer sent
// bytes that are no message; do not use the connection further.
class FrameSocket {
 public:
  // Owns `descriptor`, a connected socket. A TCP peer that vanishes silently is noticed after about 20 seconds. A send
  // fails with UNAVAILABLE if the peer reads too slowly to finish it within `send_timeout`.
  explicit FrameSocket(int descriptor, absl::Duration send_timeout = absl::InfiniteDuration());
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  absl::Status SendOpening(const v1::Sender& sender);
  // `payload`, the encoded values, has the length that the header announces. The caller may reuse it after the call.
  absl::Status SendPayload(const ValuesHeader& header, absl::Span<const char> payload);
  // Sends a server's last message. Returns when the peer has closed, or after `timeout`.
  void SendRefusal(const absl::Status& refusal, absl::Duration timeout);

  // Waits at most `timeout` for the whole message, then fails with UNAVAILABLE. INVALID_ARGUMENT also if the announced
  // job id is longer than kJobIdBytesMax; the id is not waited for.
  absl::StatusOr<v1::Sender> ReceiveOpening(absl::Duration timeout);
  // The header of a message of values, whose payload comes next; or the refusal that came instead, the last message.
  struct Header {
    absl::Status refusal;
    ValuesHeader values;  // Valid if `refusal` is OK.
  };
  absl::StatusOr<Header> ReceiveHeader();
  absl::Status ReceivePayload(absl::Span<char> payload);

  // Makes all running and later calls fail.
  void Shutdown();

 private:
  // Deadlines are on a steady clock, not on absl::Now()'s.
  absl::Status Send(absl::Span<const char> first, absl::Span<const char> second, absl::Time deadline);
  absl::Status Receive(absl::Span<char> bytes, absl::Time deadline = absl::InfiniteFuture());

  const int descriptor_;
  const absl::Duration send_timeout_;
};

// Connects to an abstract Unix socket of this host; `name` is without the leading zero byte. Fails with UNAVAILABLE.
absl::StatusOr<int> ConnectLocally(const std::string& name);
// Connects to host:port. Fails with UNAVAILABLE, also after `timeout`, or once `cancelled` returns true. It is called
// every 50 ms.
absl::StatusOr<int> ConnectTcp(const std::string& host, uint16_t port, absl::Duration timeout,
                               const std::function<bool()>& cancelled);

}  // namespace hooke

#endif  // HOOKE_WIRE_FRAME_SOCKET_H_
