#include "server/parameters/open_calls.h"

namespace hooke {

OpenCalls::Call::Call(OpenCalls* calls, grpc::ServerContextBase* context)
    : calls_(calls), context_(context), admitted_(calls->Enter(context)) {}

OpenCalls::Call::~Call() {
  if (admitted_) calls_->Leave(context_);
}

bool OpenCalls::Close(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  // The lock is held, because otherwise a handler might return meanwhile and destroy its context. TryCancel does not
  // wait.
  for (grpc::ServerContextBase* context : open_) context->TryCancel();
  const auto none_open = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_.empty(); };
  return mutex_.AwaitWithTimeout(absl::Condition(&none_open), timeout);
}

bool OpenCalls::Enter(grpc::ServerContextBase* context) {
  absl::MutexLock lock(&mutex_);
  return !closed_ && open_.insert(context).second;
}

void OpenCalls::Leave(grpc::ServerContextBase* context) {
  absl::MutexLock lock(&mutex_);
  open_.erase(context);
}

}  // namespace hooke
