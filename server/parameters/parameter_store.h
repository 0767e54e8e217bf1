#ifndef HOOKE_SERVER_PARAMETERS_PARAMETER_STORE_H_
#define HOOKE_SERVER_PARAMETERS_PARAMETER_STORE_H_

// All shards of this server, by job id, in memory while their job runs and in snapshots always. Knows no RPCs, threads
// or clocks.
//
// Thread-safe. What takes long for one job (allocating, writing a snapshot) makes only that job's callers wait. Used by
// the RPC service, the snapshot loop, and ParameterServer.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/snapshot.h"
#include "server/parameters/snapshot_history.h"
#include "server/parameters/storage.h"
#include "server/parameters/wait_clock.h"

namespace spdlog {
class logger;
}

namespace hooke {

struct ParameterStoreOptions {
  std::shared_ptr<Storage> storage;
  std::shared_ptr<spdlog::logger> logger;
  uint64_t max_center_bytes = uint64_t{8} << 30;
  absl::Duration initialize_lease = absl::Seconds(20);
  uint64_t block_values = kBlockValues;  // Of shards made from now on.
  // What waits for other groups go by.
  std::shared_ptr<WaitClock> wait_clock = std::make_shared<SteadyWaitClock>();
};

class ParameterStore {
 public:
  // With every snapshot in storage loaded. A job of which none is readable is remembered as lost, and one that there is
  // no room for as not loaded, until the next start; both are logged.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Load(ParameterStoreOptions options);

  // Makes the job's shard, or attaches to it. READY says, too, that a snapshot is on disk. INVALID_ARGUMENT,
  // FAILED_PRECONDITION (another job of this id, layout or job file; sealed), ABORTED, RESOURCE_EXHAUSTED
  // (max_center_bytes or the machine's memory, and nothing stays allocated; a full disk), UNAVAILABLE (the disk; not
  // loaded), DATA_LOSS (lost).
  absl::StatusOr<v1::AttachResponse> Attach(absl::Time now, const v1::AttachRequest& request);

  // The shard of a running job, for a sender that has the job's key. PERMISSION_DENIED: it has not. NOT_FOUND: attach
  // first. FAILED_PRECONDITION: sealed. DATA_LOSS: lost. UNAVAILABLE: not loaded.
  absl::StatusOr<std::shared_ptr<Shard>> Find(const v1::Sender& sender) const;

  // What the sender's shard was loaded from, for its group; none: it was made here, is not in memory, or is not for a
  // sender with this key.
  struct Origin {
    absl::Time snapshot;    // When it was written.
    uint64_t sequence = 0;  // Shard::HighestSequence of the group, then.
  };
  std::optional<Origin> OriginOf(const v1::Sender& sender) const;

  // The initial values are written: the center has values from now on, and a first snapshot is on disk after OK.
  absl::Status FinishInitialize(absl::string_view job_id, const Speaker& speaker);

  struct CenterHeader {
    const ShardPlan* plan = nullptr;
    uint64_t updates = 0;
  };
  struct CenterReceiver {
    absl::FunctionRef<absl::Status(const CenterHeader&)> header;                     // Called once, first.
    absl::FunctionRef<absl::Status(uint64_t first, absl::Span<const float>)> block;  // Called for each block, in order.
  };
  // Gives the shard's values to `to`, from memory, or from the snapshot of a sealed job. Ends with the first error of
  // `to`. No lock is held while `to` runs.
  absl::Status ReadCenter(absl::string_view job_id, const CenterReceiver& to) const;

  // Writes a snapshot of each shard that changed since its last. Tries all; returns the first error.
  absl::Status SnapshotChanged();

  // Writes a snapshot of one job's shard if it changed since its last: after OK, what was answered before the call is
  // on disk. OK, too, for a sealed job. PERMISSION_DENIED as Find. NOT_FOUND: no center, or no values yet. DATA_LOSS:
  // lost. Else the disk's error.
  absl::Status Save(const v1::Sender& sender);

  // Whoever waits for other groups in an exchange gets UNAVAILABLE, now and later: the server stops.
  void StopWaiting();

  // See ParameterServer::Seal.
  absl::Status Seal(absl::string_view job_id);

  uint64_t center_bytes() const;          // Reserved for shards in memory.
  std::vector<std::string> jobs() const;  // Whose shards are in memory, sorted.

  struct DiskUse {
    uint32_t centers = 0;  // Jobs whose center is on disk and not in memory: sealed, or no room to load it.
    uint64_t bytes = 0;    // Snapshots of all jobs.
  };
  DiskUse disk_use() const;

 private:
  // One entry of jobs_; all fields but the objects pointed to are guarded by mutex_.
  struct Job {
    std::shared_ptr<SnapshotHistory> history;
    std::shared_ptr<Shard> shard;  // Null: being made, sealed, or lost.
    bool busy = false;             // One thread makes the shard, or writes its snapshot.
    bool sealed = false;
    std::string key;    // JobSpecForShard.job_key, of a sealed job.
    absl::Status lost;  // Why it cannot be had: no snapshot is readable, or there is no room for it.
    std::optional<uint64_t> written_updates;  // The version of the last snapshot.
    uint64_t memory_bytes = 0;
    std::vector<Origin> origins;  // By group; empty where the shard was made here.
  };
  enum class Due { kIfChanged, kIfNone };

  explicit ParameterStore(ParameterStoreOptions options) : options_(std::move(options)) {}

  absl::Status LoadJob(const std::string& job_id, const std::vector<uint64_t>& generations);
  absl::StatusOr<std::shared_ptr<Shard>> LoadShard(SnapshotReader snapshot);
  std::shared_ptr<SnapshotHistory> MakeHistory(const std::string& job_id,
                                               const std::vector<uint64_t>& generations) const;
  absl::StatusOr<std::shared_ptr<Shard>> FindOrCreate(const ShardPlan& plan);
  absl::Status ReserveMemory(const ShardPlan& plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Shard>> ShardOf(absl::string_view job_id) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Makes the job this thread's, after at most a minute. Null: no such job in memory.
  absl::StatusOr<std::shared_ptr<Job>> Claim(absl::string_view job_id);
  void Release(Job& job);
  bool HasSnapshot(absl::string_view job_id) const;
  absl::Status Snapshot(absl::string_view job_id, Due due);
  absl::Status SealClaimed(const std::string& job_id, Job& job);

  const ParameterStoreOptions options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Job>, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
  uint64_t center_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;  // Nobody is to wait in a shard.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_PARAMETER_STORE_H_
