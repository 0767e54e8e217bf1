#ifndef HOOKE_SERVER_PARAMETERS_OPEN_CALLS_H_
#define HOOKE_SERVER_PARAMETERS_OPEN_CALLS_H_

// Tracks the RPCs that are running, so that a stopping server can end them. Otherwise a handler that waits for a
// group's next message would wait forever.

#include <grpcpp/grpcpp.h>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

// Thread-safe.
class OpenCalls {
 public:
  // One call, registered as long as its handler runs.
  class Call {
   public:
    Call(OpenCalls* calls, grpc::ServerContextBase* context);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // False: the server is stopping, and the handler must return at once.
    bool admitted() const { return admitted_; }

   private:
    OpenCalls* const calls_;
    grpc::ServerContextBase* const context_;
    const bool admitted_;
  };

  // Admits no more calls, cancels the open calls and waits until they have ended. False: some have not ended after
  // `timeout`.
  bool Close(absl::Duration timeout);

 private:
  bool Enter(grpc::ServerContextBase* context);
  void Leave(grpc::ServerContextBase* context);

  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<grpc::ServerContextBase*> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_OPEN_CALLS_H_
