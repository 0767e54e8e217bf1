#ifndef HOOKE_SERVER_COORDINATOR_COORDINATOR_FIXTURE_H_
#define HOOKE_SERVER_COORDINATOR_COORDINATOR_FIXTURE_H_

// A test fixture: a coordinator with a store in memory, a folder for its logs, and a server "b:1". Everything runs on
// one thread, and time passes only in Pass or by a change of `now_`.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/fake_server.h"
#include "server/coordinator/fake_worker.h"
#include "server/records/record_store.h"
#include "server/records/records.h"

namespace hooke {

class CoordinatorFixture : public testing::Test {
 protected:
  CoordinatorFixture();
  ~CoordinatorFixture() override;

  // Replaces the coordinator by a new one with `settings_`, which loads the same store.
  void Restart();
  // Sends a heartbeat of the FakeServer at `address`, and answers all dials. If the coordinator ends generations, the
  // server says how far their groups had come, as `shards_` has it.
  void Heartbeat(const std::string& address);
  // Lets time pass. Meanwhile the `alive` workers send heartbeats and obey commands. Server b:1 sends heartbeats if
  // `server_lives`.
  void Pass(absl::Duration time, const std::vector<FakeWorker*>& alive, bool server_lives = true);
  // Submits an example job and returns its id.
  std::string Submit(ExampleGroups groups = {});
  // Returns the jobs as they are stored.
  std::vector<JobRecord> Stored();
  v1::JobStatus Status(const std::string& job_id) { return *coordinator_->Status(job_id, now_); }
  std::string Log(const std::string& job_id) { return coordinator_->ReadLog(job_id, 0, 1 << 20)->text; }

  const std::string folder_;
  Instant now_ = {absl::FromUnixSeconds(1000000), absl::ZeroDuration()};
  std::shared_ptr<InMemoryRecordStore> store_ = std::make_shared<InMemoryRecordStore>();
  CoordinatorOptions settings_;  // Restart sets store, log, logger, writer and cluster.compare_kept.
  std::unique_ptr<Coordinator> coordinator_;
  std::map<std::string, FakeShards> shards_;  // By address.
  int submissions_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_COORDINATOR_FIXTURE_H_
