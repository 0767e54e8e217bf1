#ifndef HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
#define HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_

// Exchanges on connections without gRPC: the messages of docs/wire.md over plain TCP, and over a Unix socket for ranks
// of this host. gRPC's framing and threads cost more than the update rule. Here values go from the socket straight to
// the rule and back.
//
// One thread accepts connections and keeps each until its opening has arrived. An accepted rank's connection then gets
// a DirectSession with memory for two messages. A few threads serve all sessions (session_threads.h). A session that
// waits for other groups, for its peer, for its seat or for its shard has no thread. A rank has one connection at a
// time, besides a few earlier ones that still wait for a round: see rank_seats.h.
//
// When the store drops a shard, its sessions end, because each keeps the shard's memory.
//
// The accepting thread also looks at the clock: at the deadlines of shards, of peers and of seats.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/parameters/connection_lobby.h"
#include "server/parameters/direct_session.h"
#include "server/parameters/listening_sockets.h"
#include "server/parameters/log_limit.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/rank_seats.h"
#include "server/parameters/session_threads.h"
#include "server/parameters/shard_loader.h"

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
    // How long a peer may take to read an answer, at most 1 MiB, or to send the rest of a message. It is enough for the
    // slowest of links. TCP itself gives up earlier on a peer that reads nothing at all.
    absl::Duration message_timeout = absl::Minutes(2);
    size_t threads = 0;  // Number of threads that serve sessions; 0: twice the number of cores, 4 to 64.
  };
  // Listens and begins to accept connections. UNAVAILABLE: it cannot listen, or the process can have no more threads.
  static absl::StatusOr<std::unique_ptr<DirectExchanges>> Listen(Options options);
  // Calls Stop.
  ~DirectExchanges();

  uint16_t port() const { return sockets_.port(); }
  const std::string& local_name() const { return sockets_.local_name(); }

  // Ends all connections and threads, without waiting for any peer or group. It calls Shard::StopWaiting. A second call
  // does nothing. Call it from one thread.
  void Stop();

 private:
  DirectExchanges(Options options, ListeningSockets sockets);
  absl::Status StartThreads();

  // Called on the accepting thread:
  void Run();
  absl::Time Deadline() const;
  void Accept(absl::Time now, int listener);
  void Begin(absl::Time now, const ConnectionLobby::Opening& opening);
  // Opens the session, or has its shard loaded before that.
  void Open(absl::Time now, std::unique_ptr<DirectSession> session, const v1::Sender& sender);
  void OpenLoaded(absl::Time now);
  // Seats the sessions that wait for a seat, as far as there is room.
  void Seat(absl::Time now);
  void Refuse(absl::Time now, int descriptor, const absl::Status& refusal);
  void EndSessions(absl::Time now);
  void End(absl::Time now, uint64_t number);
  void ShutDownExpired(absl::Time now);
  // Ends the sessions of closed shards.
  void ShutDownDropped();
  void LookAtShards();

  // Called on any thread:
  void Serve(DirectSession& session);
  void NoteEnded(const DirectSession& session);
  // Has LookAtShards called when `until` has passed, or earlier.
  void LookWithin(absl::Duration until);
  // Between these the session is served, or waits for other groups.
  void EnterRounds();
  void LeaveRounds();

  const Options options_;
  const ListeningSockets sockets_;
  // An eventfd. It wakes the accepting thread when that must stop, when a session has ended, or when shards must be
  // looked at earlier than that thread had planned.
  int wake_ = -1;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> dropped_{false};  // The store has dropped a shard.
  RankSeats seats_;
  std::atomic<int64_t> look_at_;  // When LookAtShards must be called; in nanoseconds of SteadyTime.

  absl::Mutex mutex_;
  std::vector<uint64_t> ended_ ABSL_GUARDED_BY(mutex_);  // The numbers of sessions that have ended.
  size_t in_rounds_ ABSL_GUARDED_BY(mutex_) = 0;         // EnterRounds without LeaveRounds so far.
  // The numbers of sessions whose shards have been loaded, or could not be.
  std::vector<std::pair<uint64_t, absl::Status>> loaded_ ABSL_GUARDED_BY(mutex_);

  // Used by the accepting thread, and by Stop after that thread has ended.
  ConnectionLobby lobby_;
  std::unordered_map<uint64_t, std::unique_ptr<DirectSession>> sessions_;  // By number.
  std::vector<DirectSession*> seatless_;                                   // Those that wait for their seat.
  struct Loading {
    std::unique_ptr<DirectSession> session;
    v1::Sender sender;
  };
  std::unordered_map<uint64_t, Loading> loading_;    // By number: those that wait for their shard.
  uint64_t begun_ = 0;                               // Number of sessions so far.
  absl::Time next_check_ = absl::InfiniteFuture();   // When to look for expired sessions.
  absl::Time accepts_again_ = absl::InfinitePast();  // No connection is accepted before this time.
  LogLimit refusals_;
  LogLimit troubles_;

  std::unique_ptr<ShardLoader> loader_;
  std::unique_ptr<SessionThreads> threads_;
  std::thread acceptor_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
