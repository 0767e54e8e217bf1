#include "server/service/dial_back.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/channel.h"

namespace hooke {
namespace {

// Returns the last part of a gRPC text, which has the cause. A text is, for example, "failed to connect to all
// addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused".
std::string CauseOf(const std::string& text) {
  const size_t before = text.rfind(": ");
  std::string cause = before == std::string::npos ? text : text.substr(before + 2);
  if (!cause.empty()) cause[0] = absl::ascii_tolower(static_cast<unsigned char>(cause[0]));
  return cause.empty() ? "the connection failed" : cause;
}

absl::Status FailureOf(const grpc::Status& status, absl::Duration timeout) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return absl::OkStatus();
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnimplementedError("what answers there is no hooke-server of this version");
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::UnauthenticatedError(status.error_message());
    default:
      return absl::UnavailableError(CauseOf(status.error_message()));
  }
}

class GrpcDialBack final : public DialBack {
 public:
  GrpcDialBack(CallCredential credential, absl::Duration timeout)
      : credential_(std::move(credential)), timeout_(timeout), finisher_([this] { FinishUntilShutdown(); }) {}
  ~GrpcDialBack() override { GrpcDialBack::Stop(); }

  void Dial(const std::string& address, Done done) override {
    auto call = std::make_unique<Call>();
    call->done = std::move(done);
    call->stub = v1::ParameterServer::NewStub(Connect(address));
    call->context.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    Call* const tag = call.get();
    {
      absl::MutexLock lock(&mutex_);
      calls_[tag] = std::move(call);
    }
    tag->reader = tag->stub->AsyncIdentify(&tag->context, v1::IdentifyRequest(), &queue_);
    tag->reader->Finish(&tag->response, &tag->status, tag);
  }

  void Stop() override {
    if (!finisher_.joinable()) return;
    {
      absl::MutexLock lock(&mutex_);
      for (const auto& [tag, call] : calls_) tag->context.TryCancel();
    }
    queue_.Shutdown();  // The queue still gives out the calls that have begun, and ends after the last one.
    finisher_.join();
  }

 private:
  struct Call {
    Done done;
    std::unique_ptr<v1::ParameterServer::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::IdentifyResponse>> reader;
    v1::IdentifyResponse response;
    grpc::Status status;
  };

  std::shared_ptr<grpc::Channel> Connect(const std::string& address) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    // Each dial gets its own connection. An existing connection, or gRPC's pause after its failures, would only show
    // how the address was earlier.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return OpenChannel(address, arguments, credential_);
  }

  void FinishUntilShutdown() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      std::unique_ptr<Call> call;
      {
        absl::MutexLock lock(&mutex_);
        call = std::move(calls_.extract(static_cast<Call*>(tag)).mapped());
      }
      DialAnswer answer;
      answer.status = FailureOf(call->status, timeout_);
      answer.server_id = call->response.server_id();
      answer.instance = call->response.instance();
      call->done(answer);
    }
  }

  const CallCredential credential_;
  const absl::Duration timeout_;
  grpc::CompletionQueue queue_;
  absl::Mutex mutex_;
  // The calls that have not ended. The key is the call's tag in `queue_`.
  std::map<Call*, std::unique_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  std::thread finisher_;  // Its loop uses the members above, so it is declared last.
};

}  // namespace

std::unique_ptr<DialBack> MakeGrpcDialBack(CallCredential credential, absl::Duration timeout) {
  return std::make_unique<GrpcDialBack>(std::move(credential), timeout);
}

}  // namespace hooke
