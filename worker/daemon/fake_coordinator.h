#ifndef HOOKE_WORKER_DAEMON_FAKE_COORDINATOR_H_
#define HOOKE_WORKER_DAEMON_FAKE_COORDINATOR_H_

// A coordinator for tests. It welcomes workers or refuses them, and sends them commands, as the test tells it. It keeps
// the messages that workers send.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/coordinator.grpc.pb.h"

namespace hooke {

class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  struct Options {
    int port = 0;                              // 0: a free port.
    bool ack = true;                           // Whether to answer events with EventsSeen.
    bool welcome = true;                       // Whether to answer hello at all.
    bool batches = true;                       // Whether to take several messages in one.
    uint64_t lease_ms = 0;                     // Welcome.lease_ms. Heartbeats get no echo.
    grpc::Status refuse;                       // If not OK, the error with which hello is answered.
    std::map<std::string, std::string> files;  // By SHA-256: the contents that FetchFiles sends.
  };

  explicit FakeCoordinator(Options options);
  ~FakeCoordinator() override;

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Waits at most 20 s for a connected worker, and sends it a command. Returns false if none came.
  bool Send(const v1::WorkerCommand& command);

  // Returns the first of all messages so far for which `wanted` holds. Waits at most 20 s for one, then returns an
  // empty message.
  v1::WorkerMessage WaitFor(const std::function<bool(const v1::WorkerMessage&)>& wanted);
  // Waits at most 20 s until `wanted` holds for `count` messages; false if it holds for fewer.
  bool WaitForCount(const std::function<bool(const v1::WorkerMessage&)>& wanted, int64_t count);
  // Returns all messages so far. The messages of a batch (WorkerMessage.batch) are listed one by one.
  std::vector<v1::WorkerMessage> received();
  // Returns how many batches have come so far.
  int batches();

 private:
  using Stream = grpc::ServerReaderWriter<v1::WorkerCommand, v1::WorkerMessage>;

  // Takes a message. Returns the answer; nullopt: there is none.
  std::optional<v1::WorkerCommand> Take(const v1::WorkerMessage& message);
  grpc::Status WorkerSession(grpc::ServerContext* context, Stream* stream) override;
  grpc::Status FetchFiles(grpc::ServerContext* context, const v1::FetchFilesRequest* request,
                          grpc::ServerWriter<v1::FileChunk>* writer) override;

  const Options options_;
  int port_ = 0;
  absl::Mutex mutex_;
  std::vector<v1::WorkerMessage> received_ ABSL_GUARDED_BY(mutex_);
  int batches_ ABSL_GUARDED_BY(mutex_) = 0;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<grpc::Server> server_;
};

// ---- Commands that tests send, and conditions on messages.

v1::WorkerCommand StartCommand(const std::string& behaviour, uint32_t ranks, uint32_t incarnation = 1);
v1::WorkerCommand StopCommand(const std::string& reason, uint32_t incarnation = 1);
v1::WorkerCommand LeaveCommand(const std::string& reason);
bool IsStarted(const v1::WorkerMessage& message);
bool IsEnded(const v1::WorkerMessage& message);
std::function<bool(const v1::WorkerMessage&)> IsHelloOf(uint32_t rank);
std::function<bool(const v1::WorkerMessage&)> IsStep(uint32_t rank, uint64_t at_least);
std::function<bool(const v1::WorkerMessage&)> IsSilence(bool silent);
std::function<bool(const v1::WorkerMessage&)> HasLogLine(const std::string& part);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_FAKE_COORDINATOR_H_
