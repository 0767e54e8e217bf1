#ifndef HOOKE_SERVER_PARAMETERS_GRPC_EXCHANGES_H_
#define HOOKE_SERVER_PARAMETERS_GRPC_EXCHANGES_H_

// Exchanges over gRPC. gRPC's own threads receive, send, and apply messages that wait for no other group, or are small.
// A few threads serve all streams (grpc_stream.h) beside them, for what may take longer. A stream that waits for other
// groups, for its peer, for its seat or for its shard has no thread. A rank has one stream at a time, besides a few
// earlier ones that still wait for a round: see rank_seats.h.
//
// One more thread looks at the clock: at the deadlines of shards and of seats.

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_condition.h"
#include "server/parameters/grpc_stream.h"
#include "server/parameters/open_calls.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/rank_seats.h"
#include "server/parameters/shard_loader.h"
#include "server/parameters/task_threads.h"
#include "server/parameters/wait_clock.h"

namespace spdlog {
class logger;
}

namespace hooke {

// Thread-safe.
class GrpcExchanges {
 public:
  struct Options {
    ParameterStore* store = nullptr;  // Outlives this.
    std::shared_ptr<spdlog::logger> logger;
    std::shared_ptr<WaitClock> clock;  // The store's.
    size_t streams_max = 8192;         // Streams at a time; more are refused with UNAVAILABLE.
    size_t threads = 0;  // Threads that serve streams. 0: twice the number of cores, but at least 4 and at most 64.
  };
  // UNAVAILABLE: the process can have no more threads.
  static absl::StatusOr<std::unique_ptr<GrpcExchanges>> Start(Options options);
  // Call Close before, and destroy the grpc::Server.
  ~GrpcExchanges();

  // Serves a stream of Exchange. gRPC owns the result, and deletes it when the stream has ended.
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Serve(grpc::CallbackServerContext* context);

  // Admits no more streams, ends those that are open, and waits until they have ended. Contributions that wait end with
  // ParameterStore::StopWaiting, so call that before. False: some have not ended after `timeout`.
  bool Close(absl::Duration timeout);

 private:
  explicit GrpcExchanges(Options options);

  void GoOn(GrpcStream& stream);
  // Has GoOn called on one of the threads.
  void Post(GrpcStream& stream);
  void NoteOpened(GrpcStream& stream);
  void NoteDestroyed(GrpcStream& stream);
  // Has the seat asked for again when another stream leaves. `departures` is departures_ before it was asked for.
  void AwaitSeat(GrpcStream& stream, uint64_t departures);
  void NoteLeft();
  void PostSeatless() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the shard looked at when its deadlines pass, as long as turns wait there.
  void Watch(const std::shared_ptr<Shard>& shard);

  // The thread that looks at the clock:
  void Run();
  absl::Time Deadline() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void LookAtShards();
  // Adds the shards that it has used to `used`, because to free one takes long, and must not happen under the mutex.
  void CancelDropped(std::vector<std::shared_ptr<Shard>>& used) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  OpenCalls calls_;
  RankSeats seats_;
  std::atomic<uint64_t> begun_{0};  // Number of streams so far.

  absl::Mutex mutex_;
  SteadyCondition changed_;  // Signals whatever makes Run go on.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;  // A shard was dropped since CancelDropped last ran.
  size_t streams_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t departures_ ABSL_GUARDED_BY(mutex_) = 0;  // How often a stream has left.
  std::map<GrpcStream*, std::weak_ptr<Shard>> opened_ ABSL_GUARDED_BY(mutex_);
  std::vector<GrpcStream*> seatless_ ABSL_GUARDED_BY(mutex_);  // Those that wait for their seat.
  std::set<std::shared_ptr<Shard>> watched_ ABSL_GUARDED_BY(mutex_);
  absl::Time look_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // When LookAtShards must be called.

  // Last, because their threads use the others.
  std::unique_ptr<TaskThreads> threads_;
  std::unique_ptr<ShardLoader> loader_;
  std::thread clock_thread_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_GRPC_EXCHANGES_H_
