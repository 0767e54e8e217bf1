#ifndef HOOKE_SERVER_PARAMETERS_SESSION_THREADS_H_
#define HOOKE_SERVER_PARAMETERS_SESSION_THREADS_H_

// A few threads that serve many connections. A session is in one place at a time: it waits for its socket, it is in
// the queue of posted sessions, a thread serves it, or it waits elsewhere until it is posted.
//
// Sessions are served in turn: the kernel queues those whose sockets are ready, and posted ones have a queue here.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace hooke {

class DirectSession;

// Thread-safe.
class SessionThreads {
 public:
  // `serve` is called with a session that is ready, on one of the threads. It must not wait long. If only some of the
  // `threads` threads can be started, these serve all sessions. UNAVAILABLE: there can be none, or no descriptor.
  static absl::StatusOr<std::unique_ptr<SessionThreads>> Start(size_t threads,
                                                               std::function<void(DirectSession&)> serve);
  // Calls Stop.
  ~SessionThreads();

  // Serves the session when its descriptor is ready for `events` of epoll. The caller must not touch the session
  // afterwards. False: the kernel has no memory for it, and the caller keeps the session.
  bool Await(DirectSession& session, int descriptor, uint32_t events);
  // Serves the session soon.
  void Post(DirectSession& session);
  // Call it before a descriptor of Await goes to somebody else. Closed descriptors are forgotten by themselves.
  void Forget(int descriptor);

  // Returns whether at least half of the threads have nothing to do. Then a calling thread may wait a moment for its
  // session's peer, because other sessions are served meanwhile.
  bool half_idle() const { return 2 * idle_ >= threads_.size(); }
  size_t threads() const { return threads_.size(); }

  // Ends the threads, which takes as long as the running calls of `serve`. No session is served afterwards.
  void Stop();

 private:
  explicit SessionThreads(std::function<void(DirectSession&)> serve) : serve_(std::move(serve)) {}

  void Run();
  // Returns a posted session. Null: there is none, and the thread counts as idle from now on.
  DirectSession* TakePosted();
  // Returns a session whose socket is ready. An idle thread waits for it. Null: there is none, there are posted
  // sessions, or Stop was called.
  DirectSession* AwaitReady(bool is_idle);
  void WakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void(DirectSession&)> serve_;
  int epoll_ = -1;
  int wake_ = -1;  // An eventfd that is readable when a thread must look at posted_ or stopped_.
  std::atomic<bool> stopped_{false};
  std::atomic<size_t> idle_{0};  // Grows under mutex_, so that Post misses no thread that has found nothing posted.
  absl::Mutex mutex_;
  std::deque<DirectSession*> posted_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SESSION_THREADS_H_
