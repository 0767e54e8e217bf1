#include "server/coordinator/dial_back.h"

#include <grpcpp/grpcpp.h>

#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/parameter_server.grpc.pb.h"

namespace hooke {
namespace {

// gRPC's texts lead from the whole to the cause: "failed to connect to all addresses; last error: UNKNOWN:
// ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused".
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
    default:
      return absl::UnavailableError(CauseOf(status.error_message()));
  }
}

class GrpcDialBack final : public DialBack {
 public:
  explicit GrpcDialBack(absl::Duration timeout) : timeout_(timeout) {}
  ~GrpcDialBack() override { GrpcDialBack::Stop(); }

  void Dial(const std::string& address, Done done) override {
    auto call = std::make_unique<Call>();
    call->done = std::move(done);
    call->stub = v1::ParameterServer::NewStub(Connect(address));
    call->context.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    Call* const started = call.release();  // Finish deletes it.
    {
      absl::MutexLock lock(&mutex_);
      calls_.insert(started);
    }
    started->stub->async()->Identify(&started->context, &started->request, &started->response,
                                     [this, started](const grpc::Status& status) { Finish(started, status); });
  }

  void Stop() override {
    absl::MutexLock lock(&mutex_);
    for (Call* call : calls_) call->context.TryCancel();
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); };
    mutex_.Await(absl::Condition(&ended));
  }

 private:
  struct Call {
    Done done;
    std::unique_ptr<v1::ParameterServer::Stub> stub;
    grpc::ClientContext context;
    v1::IdentifyRequest request;
    v1::IdentifyResponse response;
  };

  static std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    // A connection of its own: one that another channel has, or a pause after its failures, would tell of the past.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  void Finish(Call* call, const grpc::Status& status) {
    DialAnswer answer;
    answer.status = FailureOf(status, timeout_);
    answer.server_id = call->response.server_id();
    answer.instance = call->response.instance();
    call->done(answer);
    // Last, because Stop waits for it, and this object may be gone afterwards.
    const std::unique_ptr<Call> owned(call);
    absl::MutexLock lock(&mutex_);
    calls_.erase(call);
  }

  const absl::Duration timeout_;
  absl::Mutex mutex_;
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<DialBack> MakeGrpcDialBack(absl::Duration timeout) { return std::make_unique<GrpcDialBack>(timeout); }

}  // namespace hooke
