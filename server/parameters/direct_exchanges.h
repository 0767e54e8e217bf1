#ifndef HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
#define HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_

// Exchanges on connections without gRPC: the messages of docs/wire.md over plain TCP, and over a Unix socket for ranks
// of this host. Values go from the kernel's memory to the rule and back; gRPC's framing and threads cost more than the
// rule. Used by ParameterServer.
//
// Each connection has a thread of its own, which may wait for other groups, and memory for two messages. A rank of a
// group has one at a time, and a few that it had before: see server/parameters/rank_seats.h.

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
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
  };
  // Takes connections when it returns. UNAVAILABLE: it cannot listen.
  static absl::StatusOr<std::unique_ptr<DirectExchanges>> Listen(Options options);
  // Calls Stop.
  ~DirectExchanges();

  uint16_t port() const { return port_; }                        // TCP.
  const std::string& local_name() const { return local_name_; }  // As LocateResponse.local_name.

  // Ends all connections and their threads. What waits in the store must have been told to stop. A second call does
  // nothing. From one thread.
  void Stop();

 private:
  struct Connection {
    Connection(int descriptor, uint64_t number);
    FrameSocket socket;
    const uint64_t number;  // Grows from connection to connection.
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  explicit DirectExchanges(Options options) : options_(std::move(options)) {}
  absl::Status Open();
  void AcceptAll();
  void Accept(int listener);
  void Reap();
  void Serve(Connection& connection);
  absl::Status RunExchange(Connection& connection);

  const Options options_;
  int tcp_ = -1;
  int local_ = -1;
  int wake_ = -1;  // An eventfd: the accepting thread ends.
  uint16_t port_ = 0;
  std::string local_name_;
  std::thread acceptor_;
  RankSeats seats_;

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_DIRECT_EXCHANGES_H_
