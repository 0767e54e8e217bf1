#include <grpcpp/grpcpp.h>

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "proto/worker.grpc.pb.h"
#include "wire/channel.h"
#include "worker/report/event_sink.h"

namespace hooke {
namespace {

class DaemonSink final : public EventSink {
 public:
  DaemonSink(const std::string& socket, std::function<void(const std::string&)> on_broken)
      : socket_(socket), on_broken_(std::move(on_broken)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::RankEvents::NewStub(
        // Whoever can open the socket is the worker's user: the folder lets in nobody else. So no credential is needed.
        OpenChannel(absl::StrCat("unix:", socket), arguments, /*credential=*/{}));
    stream_ = stub_->Report(&context_);
    reader_ = std::thread([this] { Watch(); });
  }

  ~DaemonSink() override {
    Cancel();
    reader_.join();
    stream_->Finish();
  }

  bool Send(const v1::RankEvent& event) override { return stream_->Write(event); }

  void Close(absl::Duration timeout) override {
    ExpectEnd();
    stream_->WritesDone();
    if (!ended_.WaitForNotificationWithTimeout(timeout)) context_.TryCancel();
  }

  void Cancel() override {
    ExpectEnd();
    context_.TryCancel();
  }

  std::string LeaveReason() const override {
    absl::MutexLock lock(&mutex_);
    return leave_;
  }

 private:
  // Reads the daemon's commands, and notices when the stream ends.
  void Watch() {
    v1::RankCommand command;
    while (stream_->Read(&command)) {
      absl::MutexLock lock(&mutex_);
      if (!command.leave().empty()) leave_ = command.leave();
    }
    ended_.Notify();
    {
      absl::MutexLock lock(&mutex_);
      if (end_expected_) return;
    }
    on_broken_(absl::StrCat("the daemon behind ", socket_, " is gone"));
  }

  void ExpectEnd() {
    absl::MutexLock lock(&mutex_);
    end_expected_ = true;
  }

  const std::string socket_;
  const std::function<void(const std::string&)> on_broken_;
  std::unique_ptr<v1::RankEvents::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RankEvent, v1::RankCommand>> stream_;
  absl::Notification ended_;
  mutable absl::Mutex mutex_;
  std::string leave_ ABSL_GUARDED_BY(mutex_);
  bool end_expected_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread reader_;
};

}  // namespace

std::unique_ptr<EventSink> DialDaemon(const std::string& socket,
                                      std::function<void(const std::string& why)> on_broken) {
  return std::make_unique<DaemonSink>(socket, std::move(on_broken));
}

}  // namespace hooke
