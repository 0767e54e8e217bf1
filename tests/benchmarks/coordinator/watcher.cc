#include "tests/benchmarks/coordinator/watcher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "wire/grpc_status.h"

namespace hooke {

Watcher::Watcher(const std::string& coordinator, const std::string& job_id) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ =
      v1::Coordinator::NewStub(grpc::CreateCustomChannel(coordinator, grpc::InsecureChannelCredentials(), arguments));
  request_.set_job_id(job_id);
  stub_->async()->WatchJob(&context_, &request_, this);
  StartRead(&read_);
  StartCall();
}

Watcher::~Watcher() {
  context_.TryCancel();
  done_.WaitForNotification();
}

uint64_t Watcher::TakeCount() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(count_, 0);
}

absl::Status Watcher::status() {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void Watcher::OnReadDone(bool ok) {
  if (!ok) return;  // The stream's end; OnDone tells why.
  {
    absl::MutexLock lock(&mutex_);
    ++count_;
  }
  StartRead(&read_);
}

void Watcher::OnDone(const grpc::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Status why = status.ok() ? absl::UnavailableError("the job has ended") : FromGrpc(status);
    status_ = absl::Status(why.code(), absl::StrCat("a watcher of ", request_.job_id(), ": ", why.message()));
  }
  done_.Notify();
}

}  // namespace hooke
