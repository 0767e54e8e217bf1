#ifndef HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
#define HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_

// Exchanges on connections without gRPC: the messages of docs/wire.md over plain TCP, and over a Unix socket for ranks
// of this host. gRPC's framing and threads cost more than the update rule. Here values go from the socket straight to
// the rule and back.
//
// One thread accepts connections and keeps each until its opening has arrived. An accepted rank's connection then gets
// its own thread, which may wait for other groups, and memory for two messages. A rank has one connection at a time,
// besides a few earlier ones that still wait for a round: see rank_seats.h.

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/parameters/connection_lobby.h"
#include "server/parameters/exchange_session.h"
#include "server/parameters/listening_sockets.h"
#include "server/parameters/log_limit.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/rank_seats.h"
#include "wire/frame_socket.h"

namespace spdlog {
class logger;
}

namespace hooke {

class DirectExchanges {
 public:
  struct Options {
    ParameterStore* store = nullptr;  // Outlives this.
    std::shared_ptr<spdlog::logger> logger;
    std::string host;  // The address or name of this host at which to listen.
    // Sessions at a time, one per rank; more are refused with UNAVAILABLE. At most half of the files that the process
    // may open: the rest is for snapshots and for gRPC.
    size_t sessions_max = 8192;
    ConnectionLobby::Limits lobby = {};
  };
  // Listens and begins to accept connections. UNAVAILABLE: it cannot listen.
  static absl::StatusOr<std::unique_ptr<DirectExchanges>> Listen(Options options);
  // Calls Stop.
  ~DirectExchanges();

  uint16_t port() const { return sockets_.port(); }
  const std::string& local_name() const { return sockets_.local_name(); }

  // Ends all connections and their threads. Call ParameterStore::StopWaiting first, or Stop waits for threads that wait
  // for other groups. A second call does nothing. Call it from one thread.
  void Stop();

 private:
  // A connection whose opening was accepted.
  struct Session {
    Session(int descriptor, ParameterStore* store, uint64_t number);
    FrameSocket socket;
    const uint64_t number;  // Later sessions have higher numbers.
    ExchangeSession exchange;
    absl::Status refusal;  // Valid once `ended`. Says why the peer is refused; OK: the connection ended by itself.
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  DirectExchanges(Options options, ListeningSockets sockets);

  // Called on the accepting thread:
  void Run();
  void Accept(absl::Time now, int listener);
  void Begin(absl::Time now, const ConnectionLobby::Opening& opening);
  absl::Status Start(Session& session);
  void Refuse(absl::Time now, int descriptor, const absl::Status& refusal);
  void EndSessions(absl::Time now);

  // Called on the session's own thread:
  void Serve(Session& session);
  absl::Status RunExchanges(Session& session);

  const Options options_;
  const ListeningSockets sockets_;
  // An eventfd. It wakes the accepting thread when that must stop or when a session has ended.
  int wake_ = -1;
  std::atomic<bool> stopped_{false};
  RankSeats seats_;

  // Used by the accepting thread, and by Stop after that thread has ended.
  ConnectionLobby lobby_;
  std::list<Session> sessions_;
  uint64_t begun_ = 0;                               // Number of sessions so far.
  absl::Time accepts_again_ = absl::InfinitePast();  // No connection is accepted before this time.
  LogLimit refusals_;
  LogLimit troubles_;

  std::thread acceptor_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
