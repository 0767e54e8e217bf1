#ifndef HOOKE_TESTS_BENCHMARKS_COORDINATOR_SIMULATED_WORKER_H_
#define HOOKE_TESTS_BENCHMARKS_COORDINATOR_SIMULATED_WORKER_H_

// A worker daemon without processes: one real stream to the coordinator, on a connection of its own. It takes every
// start, and its ranks report as real ones do (simulated_ranks.h). Messages go through the daemon's own Outbox, and
// share writes by its SendTimes, as worker/daemon/session.cc sends them.
//
// gRPC's threads call the reactions. Call Start first. Then any thread may call the other methods, but only one thread
// calls Tick.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/coordinator.pb.h"
#include "tests/benchmarks/coordinator/simulated_ranks.h"
#include "worker/daemon/outbox.h"

namespace hooke {

struct SimulatedWorkerOptions {
  std::string coordinator;  // host:port.
  std::string name;
  uint32_t slots = 1;
  double shift = 0;  // From 0 to 1: where in an interval its heartbeats and its groups' reports fall.
};

class SimulatedWorker final : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::WorkerCommand> {
 public:
  explicit SimulatedWorker(SimulatedWorkerOptions options);
  // Ends the stream and waits for that.
  ~SimulatedWorker() override;

  // Connects and says hello.
  void Start();
  bool welcomed();
  // Sends what is due by `now`: heartbeats, and reports unless `quiet`.
  void Tick(absl::Time now, bool quiet);

  // Counts since the last call.
  Sent TakeSent();
  // Whether the coordinator has acknowledged every event.
  bool AllSeen();
  // The last step sent of each group, as "<job> <group>".
  std::map<std::string, uint64_t> Steps();
  // Not OK after the stream has ended, or after a command that a benchmark does not expect.
  absl::Status status();

 private:
  struct Group {
    v1::GroupId id;
    SimulatedRanks ranks;
  };

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void Obey(const v1::WorkerCommand& command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins the next write, if it is due and no write is under way.
  void Pump();
  std::vector<v1::WorkerMessage> TakeDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SimulatedWorkerOptions options_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  bool started_ = false;
  absl::Notification done_;
  v1::WorkerCommand read_;     // Owned by the read under way.
  v1::WorkerMessage written_;  // Owned by the write under way.

  absl::Mutex mutex_;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_){OutboxOptions()};
  std::vector<Group> groups_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_heartbeat_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> waits_since_ ABSL_GUARDED_BY(mutex_);  // When the oldest message began to wait.
  bool writing_ ABSL_GUARDED_BY(mutex_) = true;                    // The hello is the first write.
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;
  Sent sent_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COORDINATOR_SIMULATED_WORKER_H_
