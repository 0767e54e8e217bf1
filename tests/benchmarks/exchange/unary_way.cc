#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "tests/benchmarks/exchange/push_pull.grpc.pb.h"
#include "tests/benchmarks/exchange/slices.h"
#include "tests/benchmarks/exchange/ways.h"

namespace hooke {
namespace {

absl::Status ToStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

struct Peer {
  Range range;
  std::unique_ptr<benchmark::PushPull::Stub> stub;
};

// One rank's simultaneous calls to all servers.
class Calls {
 public:
  explicit Calls(std::vector<Peer> peers) : peers_(std::move(peers)) {}

  absl::Status RoundTrip(absl::Span<float> x) {
    struct Call {
      grpc::ClientContext context;
      benchmark::Values request;
      benchmark::Values response;
      grpc::Status status;
      std::unique_ptr<grpc::ClientAsyncResponseReader<benchmark::Values>> reader;
    };
    std::vector<Call> calls(peers_.size());
    for (size_t i = 0; i < peers_.size(); ++i) {
      const Range& range = peers_[i].range;
      calls[i].request.set_values(x.data() + range.begin, range.size() * sizeof(float));
      calls[i].reader = peers_[i].stub->AsyncCall(&calls[i].context, calls[i].request, &queue_);
      calls[i].reader->Finish(&calls[i].response, &calls[i].status, &calls[i]);
    }
    absl::Status status;
    for (size_t ended = 0; ended < peers_.size(); ++ended) {
      void* tag = nullptr;
      bool ok = false;
      if (!queue_.Next(&tag, &ok)) return absl::InternalError("the completion queue ended");
      const Call& call = *static_cast<Call*>(tag);
      status.Update(ToStatus(call.status));
      const Range& range = peers_[static_cast<size_t>(&call - calls.data())].range;
      const std::string& bytes = call.response.values();
      if (bytes.size() != range.size() * sizeof(float)) {
        status.Update(absl::DataLossError("an answer has another length"));
      } else {
        std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(x.data() + range.begin));
      }
    }
    return status;
  }

 private:
  const std::vector<Peer> peers_;
  grpc::CompletionQueue queue_;
};

absl::StatusOr<std::unique_ptr<Calls>> Connect(const WayOptions& options, uint64_t count) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  std::vector<Peer> peers;
  for (size_t server = 0; server < options.servers.size(); ++server) {
    const Range range = ValuesWith(options, count, server);
    if (range.empty()) continue;
    const auto channel =
        grpc::CreateCustomChannel(options.servers[server], grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + options.timeout)))
      return absl::UnavailableError("no connection to " + options.servers[server]);
    peers.push_back({range, benchmark::PushPull::NewStub(channel)});
  }
  return std::make_unique<Calls>(std::move(peers));
}

}  // namespace

Prepare UnaryWay(const WayOptions& options) {
  return [options](const Task& task) -> absl::StatusOr<std::vector<Rival>> {
    absl::StatusOr<std::unique_ptr<Calls>> connected = Connect(options, task.count);
    if (!connected.ok()) return connected.status();
    const std::shared_ptr<Calls> calls = *std::move(connected);
    std::vector<float> x(task.count);
    for (uint64_t i = 0; i < task.count; ++i) x[i] = static_cast<float>(i % 1000);
    const std::vector<float> sent = x;
    if (absl::Status status = calls->RoundTrip(absl::MakeSpan(x)); !status.ok()) return status;
    if (x != sent) return absl::DataLossError("what came back is not what was sent");
    Rival way = OnVector("grpc-unary", task.count, [calls](absl::Span<float> x) { return calls->RoundTrip(x); });
    way.has_result = false;  // The first call has been checked.
    return std::vector<Rival>{way};
  };
}

}  // namespace hooke
