#ifndef HOOKE_WIRE_HTTP_REQUEST_LOBBY_H_
#define HOOKE_WIRE_HTTP_REQUEST_LOBBY_H_

// Where HTTP connections wait until the head of their request has come. One thread accepts and reads all of them. So a
// client that is slow, or sends nothing, holds a descriptor for a few seconds and no thread.

#include <functional>
#include <list>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wire/http/listening_port.h"

namespace hooke {

// A connection whose request head has come. The owner closes the descriptor, which is non-blocking.
struct ArrivedRequest {
  int descriptor = -1;
  std::string received;  // The head, which ends with an empty line, and perhaps the beginning of a body.
};

struct RequestLobbyOptions {
  size_t connections_max = 64;       // If one more comes, the one that waits the longest is closed.
  size_t head_bytes_max = 16 << 10;  // A client with a longer head gets status 431.
  absl::Duration receive_within;     // A connection without a whole head after this time is closed.
  // Called on the lobby's thread; must not wait.
  std::function<void(ArrivedRequest)> arrived;
};

class RequestLobby {
 public:
  // Begins to accept. UNAVAILABLE: the process can have no more descriptors.
  static absl::StatusOr<std::unique_ptr<RequestLobby>> Start(ListeningPort listening, RequestLobbyOptions options);
  // Closes the port and all connections that wait. `arrived` is not called any more.
  ~RequestLobby();
  RequestLobby(const RequestLobby&) = delete;
  RequestLobby& operator=(const RequestLobby&) = delete;

 private:
  struct Waiting {
    int descriptor = -1;
    std::string received;
    absl::Time expires;  // On SteadyTime's clock.
  };

  RequestLobby(ListeningPort listening, RequestLobbyOptions options, int wake);

  void Run();
  void Accept(absl::Time now);
  // Reads what has come. Returns whether the connection goes on waiting; otherwise it was handed on or closed.
  bool Receive(Waiting& connection);

  const ListeningPort listening_;
  const RequestLobbyOptions options_;
  const int wake_;  // An eventfd; readable: the thread must end.
  // Only the thread uses these.
  std::list<Waiting> waiting_;                   // In the order of arrival, so that the first one expires first.
  absl::Time accept_at_ = absl::InfinitePast();  // After a failure nothing is accepted before this time.
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WIRE_HTTP_REQUEST_LOBBY_H_
