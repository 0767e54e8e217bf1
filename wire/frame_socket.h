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

// A connection that sends and receives messages. One thread may send while another receives; any thread may call
// Shutdown. Calls block, but fail about 20 seconds after a TCP peer has vanished silently. UNAVAILABLE: the connection
// is broken, closed or shut down. INVALID_ARGUMENT: the peer sent bytes that are no message, and the connection must
// not be used further.
class FrameSocket {
 public:
  // Takes ownership of `descriptor`, a connected socket.
  explicit FrameSocket(int descriptor);
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  absl::Status SendOpening(const v1::Sender& sender);
  // Sends a message of values. `payload`, the encoded values, has the length that the header announces. The caller may
  // reuse the memory after the call.
  absl::Status SendPayload(const ValuesHeader& header, absl::Span<const char> payload);
  // The header of a message of values, whose payload comes next; or the refusal that came in its place, which is the
  // last message.
  struct Header {
    absl::Status refusal;
    ValuesHeader values;  // Valid if `refusal` is OK.
  };
  absl::StatusOr<Header> ReceiveHeader();
  absl::Status ReceivePayload(absl::Span<char> payload);

  // Makes all running and later calls fail.
  void Shutdown();

 private:
  absl::Status Send(absl::Span<const char> first, absl::Span<const char> second);
  absl::Status Receive(absl::Span<char> bytes);

  const int descriptor_;
};

// Connects to an abstract Unix socket of this host and returns the descriptor. `name` is without the leading zero byte.
// Fails with UNAVAILABLE.
absl::StatusOr<int> ConnectLocally(const std::string& name);
// Connects to host:port and returns the descriptor. Fails with UNAVAILABLE, also after `timeout` or once `cancelled`
// returns true. `timeout` begins when the host's name has been looked up. `cancelled` is called every 50 ms.
absl::StatusOr<int> ConnectTcp(const std::string& host, uint16_t port, absl::Duration timeout,
                               const std::function<bool()>& cancelled);

}  // namespace hooke

#endif  // HOOKE_WIRE_FRAME_SOCKET_H_
