#ifndef HOOKE_TESTS_BENCHMARKS_COORDINATOR_WATCHER_H_
#define HOOKE_TESTS_BENCHMARKS_COORDINATOR_WATCHER_H_

// A user's `hooke watch`: it reads the statuses of one job as they come, on a connection of its own.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/grpcpp.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/coordinator.pb.h"

namespace hooke {

class Watcher final : public grpc::ClientReadReactor<v1::JobStatus> {
 public:
  Watcher(const std::string& coordinator, const std::string& job_id);
  // Ends the stream and waits for that.
  ~Watcher() override;

  // Number of statuses that came since the last call.
  uint64_t TakeCount();
  // Not OK after the stream has ended.
  absl::Status status();

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  grpc::ClientContext context_;
  v1::WatchJobRequest request_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  v1::JobStatus read_;  // Owned by the read under way.
  absl::Notification done_;

  absl::Mutex mutex_;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COORDINATOR_WATCHER_H_
