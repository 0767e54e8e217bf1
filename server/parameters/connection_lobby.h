#ifndef HOOKE_SERVER_PARAMETERS_CONNECTION_LOBBY_H_
#define HOOKE_SERVER_PARAMETERS_CONNECTION_LOBBY_H_

// Holds the connections of DirectExchanges that have no session: those whose opening has not arrived, and those that
// are being refused.
//
// No call blocks. The number of connections and the time that they stay are bounded. A peer that sends nothing holds a
// descriptor only for a short time. If there are too many connections, the oldest is closed. The caller passes the
// time, and `now` never decreases. Calls come from one thread.

#include <poll.h>

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

class ConnectionLobby {
 public:
  struct Limits {
    size_t waiting_max = 512;  // Most connections without an opening. If one more comes, the oldest is closed.
    size_t leaving_max = 512;  // Most connections that are being refused. If one more comes, the oldest is closed.
    absl::Duration opening_timeout = absl::Seconds(10);
    // Time for a peer to read why it is refused. Until then the lobby reads and drops what the peer sends. If it closed
    // a socket with unread bytes, the kernel would reset the connection, and the refusal could be lost.
    absl::Duration leaving_timeout = absl::Seconds(2);
    // A peer that sends more than this after its refusal is closed at once. The limit is more than a window of blocks,
    // which a peer may have sent already.
    uint64_t dropped_bytes_max = uint64_t{16} << 20;
  };

  explicit ConnectionLobby(const Limits& limits) : limits_(limits) {}
  ~ConnectionLobby();
  ConnectionLobby(const ConnectionLobby&) = delete;
  ConnectionLobby& operator=(const ConnectionLobby&) = delete;

  // Takes the descriptor of a connection that was just accepted.
  void Admit(absl::Time now, int descriptor);
  // Takes the descriptor of a connection and sends `refusal` as its last message. If the socket's buffer has no room,
  // because the peer has not read earlier messages, the connection is closed at once.
  void Refuse(absl::Time now, int descriptor, const absl::Status& refusal);
  // Closes the oldest connection, to free a descriptor. Connections that are being refused are closed before others.
  // False: there is no connection.
  bool CloseOldest();

  // Adds the descriptors to poll, until deadline() at most. Pass the polled entries to Receive, and call nothing else
  // in between.
  void AppendTo(std::vector<pollfd>& polled) const;
  absl::Time deadline() const;

  // A connection whose opening has arrived, or an INVALID_ARGUMENT that tells why the bytes are no opening. The caller
  // owns the descriptor.
  struct Opening {
    int descriptor = -1;
    absl::StatusOr<v1::Sender> sender;
  };
  // Receives what has arrived, and closes connections whose time is over. `polled` are the entries that AppendTo added.
  std::vector<Opening> Receive(absl::Time now, absl::Span<const pollfd> polled);

  size_t waiting() const { return waiting_.size(); }
  size_t leaving() const { return leaving_.size(); }

 private:
  struct Waiting {
    int descriptor = -1;
    absl::Time until;
    std::string opening;  // Has the header's length at first, and later the whole opening's.
    size_t received = 0;  // How many bytes of `opening` have arrived.
  };
  struct Leaving {
    int descriptor = -1;
    absl::Time until;
    uint64_t dropped = 0;  // Bytes that were read and dropped.
  };
  enum class Progress { kGoesOn, kComplete, kEnded };

  static Progress ReceiveOpening(Waiting& waiting, absl::StatusOr<v1::Sender>& sender);
  Progress Drop(Leaving& leaving) const;

  const Limits limits_;
  std::list<Waiting> waiting_;  // In both lists the oldest connection is first.
  std::list<Leaving> leaving_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_CONNECTION_LOBBY_H_
