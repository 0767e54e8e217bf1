#ifndef HOOKE_SERVER_PARAMETERS_CONNECTION_LOBBY_H_
#define HOOKE_SERVER_PARAMETERS_CONNECTION_LOBBY_H_

// Connections of DirectExchanges that need no thread: those that have not said who they are, and those that are told
// why they are refused.
//
// No call blocks, and all numbers are bounded: whoever connects and says nothing takes a descriptor for a short time,
// and the oldest goes first. Knows no clock; `now` is the caller's, and only grows. Of one thread.

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
    size_t waiting_max = 512;  // That have not said who they are. With one more the oldest is closed.
    size_t leaving_max = 512;  // That are refused; the same.
    absl::Duration opening_timeout = absl::Seconds(10);
    // For a peer to read why it is refused. Meanwhile what it sends is dropped: with bytes unread, closing would take
    // the refusal back.
    absl::Duration leaving_timeout = absl::Seconds(2);
    // A peer that sends more than this after its refusal is closed at once. A window of blocks is less.
    uint64_t dropped_bytes_max = uint64_t{16} << 20;
  };

  explicit ConnectionLobby(const Limits& limits) : limits_(limits) {}
  ~ConnectionLobby();
  ConnectionLobby(const ConnectionLobby&) = delete;
  ConnectionLobby& operator=(const ConnectionLobby&) = delete;

  // Takes the descriptor of a connection that was just accepted.
  void Admit(absl::Time now, int descriptor);
  // Takes the descriptor of one whose peer gets this refusal as the last message. A peer that has not read what it was
  // sent before is closed at once.
  void Refuse(absl::Time now, int descriptor, const absl::Status& refusal);
  // Closes the oldest connection, for its descriptor. False: there is none.
  bool CloseOldest();

  // What to poll for, and until when: then call Receive with what was found. Nothing else is called between.
  void AppendTo(std::vector<pollfd>& polled) const;
  absl::Time deadline() const;

  // An opening that came, or why it was none: INVALID_ARGUMENT. The descriptor is the caller's.
  struct Opening {
    int descriptor = -1;
    absl::StatusOr<v1::Sender> sender;
  };
  // Receives what has come. `polled` are those that AppendTo has added. Closes those whose time is over.
  std::vector<Opening> Receive(absl::Time now, absl::Span<const pollfd> polled);

  size_t waiting() const { return waiting_.size(); }
  size_t leaving() const { return leaving_.size(); }

 private:
  struct Waiting {
    int descriptor = -1;
    absl::Time until;
    std::string opening;  // Room for all of it, as far as its length is known.
    size_t received = 0;  // Bytes of it.
  };
  struct Leaving {
    int descriptor = -1;
    absl::Time until;
    uint64_t dropped = 0;  // Bytes.
  };
  enum class Progress { kGoesOn, kComplete, kEnded };

  static Progress ReceiveOpening(Waiting& waiting, absl::StatusOr<v1::Sender>& sender);
  Progress Drop(Leaving& leaving) const;

  const Limits limits_;
  std::list<Waiting> waiting_;  // The oldest first.
  std::list<Leaving> leaving_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_CONNECTION_LOBBY_H_
