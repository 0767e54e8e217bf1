#ifndef HOOKE_TESTS_BENCHMARKS_COORDINATOR_LOAD_H_
#define HOOKE_TESTS_BENCHMARKS_COORDINATOR_LOAD_H_

// The load on a coordinator: workers whose groups run and report, users who watch jobs, and one who lists them. Each
// worker and each watcher has a connection of its own.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.grpc.pb.h"
#include "tests/benchmarks/coordinator/simulated_ranks.h"
#include "tests/benchmarks/coordinator/simulated_worker.h"
#include "tests/benchmarks/coordinator/watcher.h"

namespace hooke {

struct LoadOptions {
  std::string coordinator;  // host:port.
  uint32_t workers = 300;
  uint32_t ranks = 5000;     // Ranks of all groups together; a multiple of group_ranks.
  uint32_t group_ranks = 4;  // Ranks of a group.
  uint32_t job_groups = 50;  // Groups of a job; the last job may have fewer.
  uint32_t watchers = 5;
  absl::Duration list_every = absl::Milliseconds(200);  // Between two calls of ListJobs.
};

struct LoadResult {
  Sent sent;
  uint64_t statuses = 0;        // Statuses that all watchers got.
  std::vector<double> list_ms;  // Latencies of ListJobs.
};

class Load {
 public:
  explicit Load(LoadOptions options);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Connects all workers, submits the jobs, and waits until every group runs. Then lets it run for `warm_up`.
  absl::Status Start(absl::Duration warm_up);
  // Measures for this long.
  absl::StatusOr<LoadResult> Measure(absl::Duration length);
  // Ends the reports and checks that none was lost: all events are acknowledged, and the coordinator shows the last
  // step of every group, each in its first incarnation. DATA_LOSS: it is not so.
  absl::Status Check();

 private:
  absl::Status Submit();
  absl::StatusOr<v1::ListJobsResponse> List();
  absl::Status AwaitRunning();
  absl::Status AwaitWelcomes();
  absl::Status StatusOfAll();
  void TickUntilEnd();

  const LoadOptions options_;
  const uint32_t groups_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::vector<std::string> job_ids_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::atomic<bool> quiet_{false};
  std::atomic<bool> ending_{false};
  std::thread ticker_;
};

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COORDINATOR_LOAD_H_
