#ifndef HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
#define HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_

// Exchanges on connections without gRPC: the messages of docs/wire.md over plain TCP, and over a Unix socket for ranks
// of this host. Values go from the kernel's memory to the rule and back; gRPC's framing and threads cost more than the
// rule. Used by ParameterServer.
//
// One thread accepts connections and keeps them until they have said who they are. A connection of a group of a job
// here then has a thread of its own, which may wait for other groups, and memory for two messages. A rank of a group
// has one at a time, and a few that it had before: see server/parameters/rank_seats.h.

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
    const ParameterStore* store = nullptr;  // Outlives this.
    std::shared_ptr<spdlog::logger> logger;
    std::string host;  // To listen at: an address or a name of this host.
    // Ranks at a time; each group's rank has one. More are refused with UNAVAILABLE. Never more than half of the files
    // that the process may open: the rest is for snapshots and for gRPC.
    size_t sessions_max = 8192;
    ConnectionLobby::Limits lobby = {};
  };
  // Takes connections when it returns. UNAVAILABLE: it cannot listen.
  static absl::StatusOr<std::unique_ptr<DirectExchanges>> Listen(Options options);
  // Calls Stop.
  ~DirectExchanges();

  uint16_t port() const { return sockets_.port(); }
  const std::string& local_name() const { return sockets_.local_name(); }

  // Ends all connections and their threads. What waits in the store must have been told to stop. A second call does
  // nothing. From one thread.
  void Stop();

 private:
  // A connection whose opening was accepted.
  struct Session {
    Session(int descriptor, const ParameterStore* store, uint64_t number);
    FrameSocket socket;
    const uint64_t number;  // Grows from session to session.
    ExchangeSession exchange;
    absl::Status refusal;  // What the peer is refused, once `ended`; OK where the connection has ended by itself.
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  DirectExchanges(Options options, ListeningSockets sockets);

  // Of the accepting thread:
  void Run();
  void Accept(absl::Time now, int listener);
  void Begin(absl::Time now, const ConnectionLobby::Opening& opening);
  absl::Status Start(Session& session);
  void Refuse(absl::Time now, int descriptor, const absl::Status& refusal);
  void EndSessions(absl::Time now);

  // Of each session's.
  void Serve(Session& session);
  absl::Status RunExchanges(Session& session);

  const Options options_;
  const ListeningSockets sockets_;
  int wake_ = -1;  // An eventfd: the accepting thread looks whether it is to stop, or a session has ended.
  std::atomic<bool> stopped_{false};
  RankSeats seats_;

  // Of the accepting thread, and of Stop when that has ended.
  ConnectionLobby lobby_;
  std::list<Session> sessions_;
  uint64_t begun_ = 0;                               // Sessions until now.
  absl::Time accepts_again_ = absl::InfinitePast();  // Until then the listeners are not looked at.
  LogLimit refusals_;
  LogLimit troubles_;

  std::thread acceptor_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
