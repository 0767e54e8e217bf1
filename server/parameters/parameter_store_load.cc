// ParameterStore: the way of shards from disk to memory.

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/parameters/parameter_store.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Open(ParameterStoreOptions options) {
  auto snapshots = ListSnapshots(*options.storage);
  if (!snapshots.ok()) return snapshots.status();
  auto states = KeptStates::Open({options.storage, options.logger});
  if (!states.ok()) return states.status();
  std::unique_ptr<ParameterStore> store(new ParameterStore(std::move(options), *std::move(states)));
  for (const auto& [job_id, numbers] : *snapshots) store->FindOnDisk(job_id, numbers);
  store->RemoveOrphanStates();
  return store;
}

// Removes the states of jobs that have ended or have no center here. Such states are left over if a crash came between
// the seal of a center and the removal of its states, or if that removal failed.
void ParameterStore::RemoveOrphanStates() {
  for (const std::string& job_id : states_->jobs()) {
    {
      absl::MutexLock lock(&mutex_);
      const auto found = jobs_.find(job_id);
      if (found != jobs_.end() && !found->second->sealed) continue;
    }
    const absl::Status removed = states_->RemoveJob(job_id);
    if (!removed.ok()) options_.logger->warn("states of job {} stay: {}", job_id, std::string(removed.message()));
  }
}

void ParameterStore::FindOnDisk(const std::string& job_id, const std::vector<uint64_t>& numbers) {
  auto job = std::make_shared<Job>();
  job->history = MakeHistory(job_id, numbers);
  const absl::StatusOr<SnapshotReader> snapshot = job->history->OpenNewestUnverified();
  absl::MutexLock lock(&mutex_);
  if (!snapshot.ok()) {
    options_.logger->error("{}", std::string(snapshot.status().message()));
    job->lost = snapshot.status();
  } else {
    job->key = snapshot->plan().job.job_key();
    job->sealed = snapshot->sealed();
    if (!job->sealed) {
      // The memory is reserved before the shard is loaded, so that a new job cannot take it away.
      if (absl::Status reserved = ReserveMemory(snapshot->plan()); reserved.ok()) {
        job->unloaded = true;
        job->memory_bytes = snapshot->plan().memory_bytes;
      } else {
        job->lost = NoRoom(job_id, reserved);
      }
    }
  }
  jobs_[job_id] = std::move(job);
}

// Returns and logs the error for a job whose shard has no room in memory. Other jobs go on. With UNAVAILABLE, the job's
// groups wait as if the server were away, so their steps are kept.
absl::Status ParameterStore::NoRoom(absl::string_view job_id, const absl::Status& why) const {
  absl::Status status = absl::UnavailableError(absl::StrCat(
      "the center of job ", job_id, " is kept on this server's disk, but there is no room to load it: ", why.message(),
      "; then start the server again"));
  options_.logger->error("{}", std::string(status.message()));
  return status;
}

void ParameterStore::LoadRest() {
  std::vector<std::string> unloaded;
  std::vector<std::string> sealed;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [job_id, job] : jobs_) {
      if (job->unloaded) unloaded.push_back(job_id);
      if (job->sealed) sealed.push_back(job_id);
    }
  }
  // Running jobs come first, because their groups wait for them.
  for (const std::string& job_id : unloaded) {
    if (stopping()) return;
    Load(job_id).IgnoreError();  // Load logs its error.
  }
  for (const std::string& job_id : sealed) {
    if (stopping()) return;
    VerifySealed(job_id);
  }
}

absl::Status ParameterStore::Load(absl::string_view job_id) {
  std::shared_ptr<Job> job;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(job_id);
    if (found == jobs_.end() || !found->second->unloaded) return absl::OkStatus();
    job = found->second;
    if (!AwaitIdle(*job)) {
      return absl::UnavailableError(
          absl::StrCat("the shard of job ", job_id, " is still being read from this server's disk; try again"));
    }
    if (!job->unloaded) return absl::OkStatus();
    job->busy = true;
  }
  LoadClaimed(std::string(job_id), *job);
  Release(*job);
  return absl::OkStatus();
}

void ParameterStore::LoadClaimed(const std::string& job_id, Job& job) {
  std::shared_ptr<SnapshotHistory> history;
  {
    absl::MutexLock lock(&mutex_);
    history = job.history;
  }
  absl::Time written;
  const auto read = [&]() -> absl::StatusOr<std::unique_ptr<Shard>> {
    absl::StatusOr<SnapshotReader> snapshot = history->OpenNewest();
    if (!snapshot.ok()) {
      options_.logger->error("{}", std::string(snapshot.status().message()));
      return snapshot.status();
    }
    written = snapshot->written();
    absl::StatusOr<std::unique_ptr<Shard>> shard = ReadShard(*std::move(snapshot), options_.wait_clock);
    // The machine has less memory than --max-center-bytes.
    if (absl::IsResourceExhausted(shard.status())) return NoRoom(job_id, shard.status());
    return shard;
  };
  absl::StatusOr<std::unique_ptr<Shard>> shard = read();
  std::vector<Origin> origins;
  if (shard.ok()) {
    const v1::JobSpecForShard& spec = (*shard)->plan().job;
    for (uint32_t group = 0; group < spec.groups(); ++group) {
      origins.push_back({written, (*shard)->HighestSequence(group)});
    }
    options_.logger->info("job {}: shard {} of {} loaded from its snapshot, {} blocks, version {}", job_id,
                          spec.shard_index(), spec.shard_count(), (*shard)->blocks(), (*shard)->updates());
  }
  absl::MutexLock lock(&mutex_);
  job.unloaded = false;
  if (!shard.ok()) {
    center_bytes_ -= std::exchange(job.memory_bytes, 0);
    job.lost = shard.status();
    return;
  }
  if (stopping_) (*shard)->StopWaiting();
  job.shard = *std::move(shard);
  job.written_updates = job.shard->updates();
  job.same_on_disk = options_.wait_clock->Now();
  job.origins = std::move(origins);
}

void ParameterStore::VerifySealed(const std::string& job_id) {
  std::shared_ptr<Job> job;
  std::shared_ptr<SnapshotHistory> history;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(job_id);
    if (found == jobs_.end() || !found->second->sealed || found->second->busy) return;
    job = found->second;
    job->busy = true;
    history = job->history;
  }
  const absl::Status status = history->OpenNewest([this]() { return stopping(); }).status();
  if (absl::IsDataLoss(status)) options_.logger->error("{}", std::string(status.message()));
  absl::MutexLock lock(&mutex_);
  job->busy = false;
  if (!absl::IsDataLoss(status)) return;
  job->sealed = false;
  job->lost = status;
}

bool ParameterStore::stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

}  // namespace hooke
