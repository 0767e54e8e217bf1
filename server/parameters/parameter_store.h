#ifndef HOOKE_SERVER_PARAMETERS_PARAMETER_STORE_H_
#define HOOKE_SERVER_PARAMETERS_PARAMETER_STORE_H_

// All shards of this server, by job id. The shard of a running job is in memory once it is loaded. Once it has values,
// it is also in snapshots. Knows no RPCs, and starts no threads.
//
// Open reads no values, so it takes the same time for small and for large centers. A running job's shard is loaded by
// the first caller who needs it, or by LoadRest; other callers wait for it, at most a minute.
//
// Sources: parameter_store.cc, parameter_store_load.cc for the way from disk to memory, and parameter_store_attach.cc
// for groups that begin, and for later generations of a job (shard_plan.h).
//
// Thread-safe. Long operations on one job, such as allocating its shard or writing its snapshot, delay only that job's
// callers.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
#include "server/parameters/group_reached.h"
#include "server/parameters/kept_states.h"
#include "server/parameters/parameter_figures.h"
#include "server/parameters/served_exchanges.h"
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
  uint64_t block_values = kBlockValues;  // Block size of new shards; a loaded shard keeps its own.
  // The clock for waits for other groups.
  std::shared_ptr<WaitClock> wait_clock = std::make_shared<SteadyWaitClock>();
};

class ParameterStore {
 public:
  // The longest time that a caller waits while another caller works on the same job's shard. It is enough to load
  // gigabytes from a slow disk.
  static constexpr absl::Duration kJobBusyMax = absl::Minutes(1);

  // Finds every job in storage, and reserves the memory of those that run. A job without a readable snapshot is kept as
  // lost. A job for which there is no room stays on disk until the next start. Both are logged.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Open(ParameterStoreOptions options);

  // Loads the running jobs' shards that nobody has asked for yet, then verifies the sealed jobs' snapshots. A job whose
  // snapshots are all damaged is lost. Returns early after StopWaiting. Call it once, from a thread of its own.
  void LoadRest();

  // Makes the job's shard, or attaches to it. If the request is of a later generation of the job than the shard, the
  // center goes on in a new shard (Shard::Succeed), and the kept states of groups that no longer exist are removed.
  // READY also means that a snapshot of this generation is on disk. INVALID_ARGUMENT: the request is out of range.
  // FAILED_PRECONDITION: another job had this id, the layout or the job file differs, or the job is sealed. ABORTED: a
  // later incarnation of the group has attached, or a later generation has begun. RESOURCE_EXHAUSTED: the disk is full,
  // or there is no memory (max_center_bytes or the machine's); no memory stays reserved. UNAVAILABLE: the disk failed,
  // or the job is not loaded. DATA_LOSS: the job is lost.
  absl::StatusOr<v1::AttachResponse> Attach(absl::Time now, const v1::AttachRequest& request);

  // Returns the shard of a running job, for a sender that has the job's key. PERMISSION_DENIED: the key is wrong.
  // NOT_FOUND: attach first. FAILED_PRECONDITION: the job is sealed. DATA_LOSS: it is lost. UNAVAILABLE: it is not
  // loaded.
  absl::StatusOr<std::shared_ptr<Shard>> Find(const v1::Sender& sender);
  // Does the same without waiting for the disk. nullopt: the shard is not loaded yet; see Load.
  std::optional<absl::StatusOr<std::shared_ptr<Shard>>> FindLoaded(const v1::Sender& sender) const;
  // Loads the job's shard if it is unloaded, or waits at most a minute until another thread has. UNAVAILABLE: it is not
  // loaded by then. After OK the job may still have no shard; FindLoaded returns the reason.
  absl::Status Load(absl::string_view job_id);

  // Describes the snapshot from which the sender's shard was loaded. OriginOf returns nullopt if the shard was made
  // here, is not in memory, or the sender's key is wrong.
  struct Origin {
    absl::Time snapshot;    // When the snapshot was written.
    uint64_t sequence = 0;  // Shard::HighestSequence of the sender's group in that snapshot.
  };
  std::optional<Origin> OriginOf(const v1::Sender& sender);

  // Marks the center as initialized. Call it when all initial values are written. After OK a first snapshot is on disk.
  absl::Status FinishInitialize(absl::string_view job_id, const Speaker& speaker);

  // Does what ParameterServer::EndGeneration describes.
  absl::StatusOr<std::vector<GroupReached>> EndGeneration(const std::string& job_id, absl::string_view job_key,
                                                          uint32_t successor);

  struct CenterHeader {
    const ShardPlan* plan = nullptr;
    uint64_t updates = 0;
  };
  struct CenterReceiver {
    absl::FunctionRef<absl::Status(const CenterHeader&)> header;                     // Called once, first.
    absl::FunctionRef<absl::Status(uint64_t first, absl::Span<const float>)> block;  // Called for each block, in order.
  };
  // Passes the shard's values to `to`: from memory, or from the last snapshot if the job is sealed. Stops at the first
  // error of `to`. No lock is held while `to` runs. UNAVAILABLE: the shard is not loaded, or the job ended meanwhile;
  // try again.
  absl::Status ReadCenter(absl::string_view job_id, const CenterReceiver& to);

  // Writes a snapshot of each shard that changed since its last one. Tries all shards; returns the first error.
  absl::Status SnapshotChanged();

  // Writes a snapshot of one job's shard if it changed since its last one. After OK, all exchanges answered before the
  // call are on disk. A sealed job gives OK too, because its last snapshot is written. PERMISSION_DENIED: the key is
  // wrong. NOT_FOUND: there is no center, or it has no values yet. ABORTED: the sender's generation is over. DATA_LOSS:
  // the job is lost. UNAVAILABLE: the shard is not loaded yet, or another snapshot of it is still being written. Other
  // errors come from the disk.
  absl::Status Save(const v1::Sender& sender);

  // Returns the ranks' own states of running jobs. Seal and Forget remove the states of their job.
  KeptStates& states() { return *states_; }

  // Ends exchanges that wait for other groups, now or later, with UNAVAILABLE. Call it when the server stops.
  void StopWaiting();

  // Returns the last exchanges with the job's shard, also for a while after Seal: of the kSealedServedMax jobs that
  // were sealed last. NOT_FOUND: there are none, or none any more.
  absl::StatusOr<std::shared_ptr<const ServedExchanges>> ServedOf(absl::string_view job_id) const;
  static constexpr size_t kSealedServedMax = 16;

  // Does what ParameterServer::Seal describes.
  absl::Status Seal(absl::string_view job_id);

  // Does what ParameterServer::Forget describes.
  absl::Status Forget(const std::string& job_id, absl::string_view job_key);

  // Has `dropped` called whenever the store has given up a shard, which is closed then (Shard::closed). Whoever still
  // has the shard should let it go, so that its memory becomes free. `dropped` is called under a lock: it must neither
  // wait nor call the store. It is not called any more after IgnoreDropped(owner).
  void OnDropped(const void* owner, std::function<void()> dropped) ABSL_LOCKS_EXCLUDED(dropped_mutex_);
  void IgnoreDropped(const void* owner) ABSL_LOCKS_EXCLUDED(dropped_mutex_);

  uint64_t center_bytes() const;          // Memory reserved for shards.
  std::vector<std::string> jobs() const;  // Jobs whose shards are in memory or will be loaded, sorted.

  struct DiskUse {
    uint32_t centers = 0;  // Jobs whose center is only on disk: they are sealed, or there was no room.
    uint64_t bytes = 0;    // Size of the snapshots and kept states of all jobs.
    std::vector<std::pair<std::string, uint64_t>> jobs;  // Jobs without a shard in memory, sorted, and their bytes.
  };
  DiskUse disk_use() const;

  // Figures of the shards in memory, by job id, and of snapshots.
  ParameterFigures Figures() const;

 private:
  // An entry of jobs_. mutex_ guards all its fields, but not the objects that they point to.
  struct Job {
    std::shared_ptr<SnapshotHistory> history;
    std::shared_ptr<Shard> shard;  // Null while it is made or unloaded, and if the job is sealed or lost.
    bool busy = false;             // A thread is making, loading or verifying the shard, or writing its snapshot.
    bool unloaded = false;         // The job runs, and its shard is in snapshots only.
    bool sealed = false;
    std::string key;  // JobSpecForShard.job_key; set if the job was found on disk or is sealed.
    // Not OK: why the shard cannot be had. No snapshot is readable, or there is no room for the shard.
    absl::Status lost;
    // Shard::updates() of the shard's last snapshot; nullopt: there is none yet.
    std::optional<uint64_t> written_updates;
    std::optional<absl::Time> same_on_disk;  // When the shard was last known to be as it is in its last snapshot.
    std::optional<absl::Duration> snapshot_took;
    uint64_t memory_bytes = 0;
    std::vector<Origin> origins;  // Indexed by group; empty if the shard was made here.
  };
  enum class Due { kIfChanged, kIfNone };

  ParameterStore(ParameterStoreOptions options, std::unique_ptr<KeptStates> states)
      : options_(std::move(options)), states_(std::move(states)) {}

  void FindOnDisk(const std::string& job_id, const std::vector<uint64_t>& numbers);
  void RemoveOrphanStates();
  void LoadClaimed(const std::string& job_id, Job& job);
  void VerifySealed(const std::string& job_id);
  bool stopping() const;
  absl::Status NoRoom(absl::string_view job_id, const absl::Status& why) const;
  std::shared_ptr<SnapshotHistory> MakeHistory(const std::string& job_id, const std::vector<uint64_t>& numbers) const;
  // Drops the last exchanges of a sealed job, if there are some.
  void DropServed(absl::string_view job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Shard>> FindOrCreate(const ShardPlan& plan);
  // Has the center go on in the generation of `plan`. Returns the job's shard, which may be of a later generation
  // still, if another group has begun that meanwhile. After an error all is as before.
  absl::StatusOr<std::shared_ptr<Shard>> BeginGeneration(const ShardPlan& plan);
  absl::StatusOr<std::shared_ptr<Shard>> BeginClaimed(const ShardPlan& plan, Job& job);
  // `held` is what is reserved for the job already.
  absl::Status ReserveMemory(const ShardPlan& plan, uint64_t held = 0) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a block of the job's center. `shard` is the job's shard; if a later generation has begun, it becomes that
  // generation's.
  absl::StatusOr<std::vector<float>> ReadBlock(absl::string_view job_id, uint64_t block, std::shared_ptr<Shard>& shard);
  absl::StatusOr<std::shared_ptr<Shard>> ShardOf(absl::string_view job_id) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Marks the job as busy for the calling thread, which must call Release. Waits at most a minute for another thread.
  // Null: the job has no shard in memory, for example because it is not loaded yet.
  absl::StatusOr<std::shared_ptr<Job>> Claim(absl::string_view job_id);
  void Release(Job& job);
  // Waits at most kJobBusyMax until no thread is busy with the job. False: one still is.
  bool AwaitIdle(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasSnapshot(absl::string_view job_id) const;
  absl::Status Snapshot(absl::string_view job_id, Due due);
  absl::Status SealClaimed(const std::string& job_id, Job& job);
  void TellDropped() ABSL_LOCKS_EXCLUDED(mutex_, dropped_mutex_);

  const ParameterStoreOptions options_;
  const std::unique_ptr<KeptStates> states_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Job>, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
  uint64_t center_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t snapshots_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t snapshot_failures_ ABSL_GUARDED_BY(mutex_) = 0;
  // The exchanges of the jobs that were sealed last, with their ids. The job that was sealed last is at the end.
  std::deque<std::pair<std::string, std::shared_ptr<const ServedExchanges>>> sealed_served_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;  // Set by StopWaiting; new shards get it, too.
  absl::Mutex dropped_mutex_;
  std::map<const void*, std::function<void()>> dropped_ ABSL_GUARDED_BY(dropped_mutex_);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_PARAMETER_STORE_H_
