#ifndef HOOKE_SERVER_SERVICE_WORKER_SESSIONS_H_
#define HOOKE_SERVER_SERVICE_WORKER_SESSIONS_H_

// All workers' streams, served by one thread on one gRPC completion queue. The thread reads messages, passes them to
// the Coordinator and writes its commands. It waits for nothing but the queue. The Coordinator's calls for daemons do
// no I/O, and a worker that does not read only fills its own outbox.
//
// One thread is cheaper than two for each worker, because a message then wakes no second thread. In a gRPC server with
// such a queue, no other thread polls the network for new calls. So this thread also accepts the calls of users and
// ranks.

#include <google/protobuf/arena.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/instant.h"
#include "proto/coordinator.grpc.pb.h"
#include "server/cluster/effects.h"
#include "server/coordinator/coordinator.h"

namespace hooke {

class WorkerSessions {
 public:
  // Messages come as bytes, so that this class chooses the memory into which they are decoded.
  using Service = v1::Coordinator::WithRawMethod_WorkerSession<v1::Coordinator::Service>;

  // `coordinator` must outlive this object.
  WorkerSessions(Coordinator& coordinator, std::function<Instant()> clock);
  // If Serve was called, Join must have been called too.
  ~WorkerSessions();
  WorkerSessions(const WorkerSessions&) = delete;
  WorkerSessions& operator=(const WorkerSessions&) = delete;

  // Adds this object's completion queue to the server. Must be called once, before the server is started.
  void AddTo(grpc::ServerBuilder& builder) { queue_ = builder.AddCompletionQueue(); }
  // Starts the thread. `service` must be registered with the server, which must have started.
  void Serve(Service& service);
  // Waits for the end of all streams. The caller shuts the server down first, which ends the streams. The server must
  // still exist, because gRPC's last events refer to it. A second call does nothing.
  void Join();

 private:
  struct Stream;
  // An operation of a stream; its address is the tag on the queue. `then` handles the result.
  struct Operation {
    Stream* stream;
    void (WorkerSessions::*then)(Stream& stream, bool ok);
  };

  // Wakes the thread. It is shared with the Coordinator, which may call it for a moment longer than this object lives.
  class Alarm {
   public:
    // Wakes the thread if it waits, or is about to wait. Any thread may call it.
    void Ring();
    // Only the thread calls these functions. Ring wakes the thread only between Arm and Disarm. Rang must be called
    // when the queue returns the tag `this`.
    void Arm(grpc::CompletionQueue* queue);
    void Disarm();
    void Rang();

   private:
    absl::Mutex mutex_;
    grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
    grpc::CompletionQueue* queue_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Null while disarmed.
    bool is_set_ ABSL_GUARDED_BY(mutex_) = false;                     // The queue has not returned the alarm's tag yet.
  };

  void Run();
  // Waits for the queue's next event and handles it. Returns after some time even if there is none.
  void HandleNext();
  void SendReady();

  void Accept();
  void Accepted(Stream& stream, bool ok);
  void HelloRead(Stream& stream, bool ok);
  void MessageRead(Stream& stream, bool ok);
  void Written(Stream& stream, bool ok);
  void Finished(Stream& stream, bool ok);
  // Begins the next write, if there is something to send and no write under way.
  void Send(Stream& stream);
  void Cancel(Stream& stream);
  // Ends the stream with `status`, because nothing more can be read from it, or because a message was refused.
  void End(Stream& stream, const absl::Status& status);

  // Decodes a stream's message. The result lives until the next call. Null: the bytes are no valid message.
  const v1::WorkerMessage* Decode(grpc::ByteBuffer& bytes);

  Coordinator& coordinator_;
  const std::function<Instant()> clock_;
  const std::shared_ptr<Alarm> alarm_ = std::make_shared<Alarm>();
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Service* service_ = nullptr;

  // Only the thread uses these.
  std::vector<char> arena_block_;
  google::protobuf::Arena arena_;  // Holds the message that Decode returned last.
  // All streams, including the one that waits for a worker to connect.
  std::map<Stream*, std::unique_ptr<Stream>> streams_;
  std::map<SessionId, Stream*> sessions_;  // Streams whose worker has said hello.
  bool accepting_ = false;                 // False: Serve was not called yet, or the server is shut down.
  absl::Time next_flush_ = absl::InfinitePast();

  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVICE_WORKER_SESSIONS_H_
