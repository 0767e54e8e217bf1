#include "server/parameters/parameter_store.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Returns the error for users who read or save a center. Groups get other texts.
absl::Status NoCenter(absl::string_view job_id) {
  return absl::NotFoundError(absl::StrCat("job ", job_id, " has no center on this server: it failed or was cancelled ",
                                          "before its first values, or it ran on other servers"));
}

absl::Status NoValues(absl::string_view job_id) {
  return absl::NotFoundError(
      absl::StrCat("the center of job ", job_id, " has no values here yet; try again when its first group trains"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Shard>> ParameterStore::Find(const v1::Sender& sender) {
  while (true) {
    if (absl::Status status = Load(sender.job_id()); !status.ok()) return status;
    auto shard = FindLoaded(sender);
    if (shard.has_value()) return *std::move(shard);
  }
}

std::optional<absl::StatusOr<std::shared_ptr<Shard>>> ParameterStore::FindLoaded(const v1::Sender& sender) const {
  absl::StatusOr<std::shared_ptr<Shard>> shard;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(sender.job_id());
    if (found != jobs_.end() && found->second->unloaded) return std::nullopt;
    shard = ShardOf(sender.job_id());
  }
  if (!shard.ok()) return shard;
  absl::Status status = CheckKey(sender.job_id(), (*shard)->plan().job.job_key(), sender.job_key());
  if (!status.ok()) return status;
  return shard;
}

std::optional<ParameterStore::Origin> ParameterStore::OriginOf(const v1::Sender& sender) {
  if (!Load(sender.job_id()).ok()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(sender.job_id());
  if (found == jobs_.end() || found->second->shard == nullptr) return std::nullopt;
  const Job& job = *found->second;
  if (sender.group() >= job.origins.size()) return std::nullopt;
  if (!CheckKey(sender.job_id(), job.shard->plan().job.job_key(), sender.job_key()).ok()) return std::nullopt;
  return job.origins[sender.group()];
}

absl::Status ParameterStore::FinishInitialize(absl::string_view job_id, const Speaker& speaker) {
  absl::StatusOr<std::shared_ptr<Shard>> shard;
  {
    absl::MutexLock lock(&mutex_);
    shard = ShardOf(job_id);
  }
  if (!shard.ok()) return shard.status();
  if (absl::Status status = (*shard)->CompleteInitialize(speaker); !status.ok()) return status;
  return Snapshot(job_id, Due::kIfNone);
}

absl::Status ParameterStore::ReadCenter(absl::string_view job_id, const CenterReceiver& to) {
  if (absl::Status status = Load(job_id); !status.ok()) return status;
  std::shared_ptr<Shard> shard;
  std::shared_ptr<SnapshotHistory> history;
  {
    absl::MutexLock lock(&mutex_);
    const auto job = jobs_.find(job_id);
    if (job != jobs_.end() && job->second->sealed) {
      history = job->second->history;
    } else {
      absl::StatusOr<std::shared_ptr<Shard>> found = ShardOf(job_id);
      if (absl::IsNotFound(found.status())) return NoCenter(job_id);
      if (!found.ok()) return found.status();
      shard = *std::move(found);
    }
  }
  if (shard != nullptr) {
    if (!shard->initialized()) return NoValues(job_id);
    if (absl::Status status = to.header({&shard->plan(), shard->updates()}); !status.ok()) return status;
    const uint64_t blocks = shard->blocks();  // Later generations have the same ones.
    for (uint64_t block = 0; block < blocks; ++block) {
      const absl::StatusOr<std::vector<float>> values = ReadBlock(job_id, block, shard);
      if (!values.ok()) return values.status();
      if (absl::Status status = to.block(shard->BlockRange(block).begin, *values); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<SnapshotReader> snapshot = history->OpenNewest();
  if (!snapshot.ok()) return snapshot.status();
  const ShardPlan& plan = snapshot->plan();
  if (absl::Status status = to.header({&plan, snapshot->updates()}); !status.ok()) return status;
  for (uint64_t block = plan.blocks.begin; block < plan.blocks.end; ++block) {
    absl::StatusOr<Shard::BlockCopy> copy = snapshot->ReadBlock();
    if (!copy.ok()) return copy.status();
    if (absl::Status status = to.block(plan.BlockRange(block).begin, copy->values); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ParameterStore::ReadBlock(absl::string_view job_id, uint64_t block,
                                                             std::shared_ptr<Shard>& shard) {
  while (true) {
    std::vector<float> values = shard->CopyBlock(block).values;
    if (!values.empty()) return values;
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(job_id);
    if (found == jobs_.end() || !AwaitIdle(*found->second) || found->second->shard == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("the center of job ", job_id, " changed its place while it was read; try again"));
    }
    shard = found->second->shard;
  }
}

absl::Status ParameterStore::SnapshotChanged() {
  absl::Status first_error;
  for (const std::string& job_id : jobs()) first_error.Update(Snapshot(job_id, Due::kIfChanged));
  return first_error;
}

absl::Status ParameterStore::Save(const v1::Sender& sender) {
  const std::string& job_id = sender.job_id();
  if (absl::Status status = Load(job_id); !status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    const auto job = jobs_.find(job_id);
    if (job != jobs_.end() && job->second->sealed) return CheckKey(job_id, job->second->key, sender.job_key());
    absl::StatusOr<std::shared_ptr<Shard>> shard = ShardOf(job_id);
    if (absl::IsNotFound(shard.status())) return NoCenter(job_id);
    if (!shard.ok()) return shard.status();
    absl::Status status = CheckKey(job_id, (*shard)->plan().job.job_key(), sender.job_key());
    if (!status.ok()) return status;
    const uint32_t first = (*shard)->first_incarnation();
    if (sender.incarnation() < first) return GenerationOver(job_id, first);
    if (!(*shard)->initialized()) return NoValues(job_id);
  }
  return Snapshot(job_id, Due::kIfChanged);
}

absl::StatusOr<std::shared_ptr<const ServedExchanges>> ParameterStore::ServedOf(absl::string_view job_id) const {
  absl::MutexLock lock(&mutex_);
  const auto job = jobs_.find(job_id);
  if (job != jobs_.end() && job->second->shard != nullptr) return job->second->shard->served();
  for (const auto& [sealed, served] : sealed_served_) {
    if (sealed == job_id) return served;
  }
  return absl::NotFoundError(
      absl::StrCat("this server has no exchanges of job ", job_id, " in memory: it has ended, or none were here"));
}

void ParameterStore::DropServed(absl::string_view job_id) {
  const auto of_job = [job_id](const auto& sealed) { return sealed.first == job_id; };
  sealed_served_.erase(std::remove_if(sealed_served_.begin(), sealed_served_.end(), of_job), sealed_served_.end());
}

void ParameterStore::StopWaiting() {
  std::vector<std::shared_ptr<Shard>> shards;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& [job_id, job] : jobs_) {
      if (job->shard != nullptr) shards.push_back(job->shard);
    }
  }
  for (const std::shared_ptr<Shard>& shard : shards) shard->StopWaiting();
}

absl::Status ParameterStore::Seal(absl::string_view job_id) {
  if (absl::Status status = Load(job_id); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Job>> job = Claim(job_id);
  if (!job.ok()) return job.status();
  if (*job == nullptr) return absl::OkStatus();
  absl::Status status = SealClaimed(std::string(job_id), **job);
  Release(**job);
  return status;
}

absl::Status ParameterStore::SealClaimed(const std::string& job_id, Job& job) {
  std::shared_ptr<Shard> shard;
  std::shared_ptr<SnapshotHistory> history;
  {
    absl::MutexLock lock(&mutex_);
    shard = job.shard;
    history = job.history;
  }
  shard->Close();
  const bool initialized = shard->initialized();
  if (initialized) {
    if (absl::Status status = history->Write(*shard, /*sealed=*/true); !status.ok()) {
      absl::MutexLock lock(&mutex_);
      ++snapshot_failures_;
      return status;
    }
  }
  {
    absl::MutexLock lock(&mutex_);
    if (initialized) ++snapshots_;
    center_bytes_ -= std::exchange(job.memory_bytes, 0);
    job.key = shard->plan().job.job_key();
    job.shard = nullptr;
    job.sealed = initialized;
    DropServed(job_id);
    if (initialized) sealed_served_.emplace_back(job_id, shard->served());
    if (sealed_served_.size() > kSealedServedMax) sealed_served_.pop_front();
    if (!initialized) jobs_.erase(job_id);  // The center has no values, so there is nothing to keep.
  }
  shard.reset();
  TellDropped();
  if (absl::Status status = states_->RemoveJob(job_id); !status.ok()) {
    options_.logger->warn("states of job {} stay until the next start: {}", job_id, std::string(status.message()));
  }
  options_.logger->info("job {}: {}", job_id,
                        initialized ? "sealed, its last snapshot is written" : "forgotten, it never had values");
  return absl::OkStatus();
}

absl::Status ParameterStore::Forget(const std::string& job_id, absl::string_view job_key) {
  std::shared_ptr<Job> job;
  std::shared_ptr<Shard> shard;
  std::shared_ptr<SnapshotHistory> history;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(job_id);
    if (found == jobs_.end()) return absl::OkStatus();
    job = found->second;
    if (!AwaitIdle(*job)) {
      return absl::UnavailableError(absl::StrCat("the shard of job ", job_id, " is being read or written; try again"));
    }
    shard = job->shard;
    history = job->history;
    const std::string& key = shard != nullptr ? shard->plan().job.job_key() : job->key;
    if (!CheckKey(job_id, key, job_key).ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the snapshots of job ", job_id, " in ", options_.storage->Describe(),
          " are of another job with that id, or damaged: they stay; if nobody needs them, remove them by hand"));
    }
    job->busy = true;
  }
  if (shard != nullptr) shard->Close();
  absl::Status removed = states_->RemoveJob(job_id);
  if (removed.ok()) removed = history->RemoveAll();
  {
    absl::MutexLock lock(&mutex_);
    job->busy = false;
    if (!removed.ok()) return removed;
    center_bytes_ -= std::exchange(job->memory_bytes, 0);
    job->unloaded = false;
    job->shard = nullptr;
    jobs_.erase(job_id);
    DropServed(job_id);
  }
  shard.reset();
  TellDropped();
  return absl::OkStatus();
}

void ParameterStore::OnDropped(const void* owner, std::function<void()> dropped) {
  absl::MutexLock lock(&dropped_mutex_);
  dropped_[owner] = std::move(dropped);
}

void ParameterStore::IgnoreDropped(const void* owner) {
  absl::MutexLock lock(&dropped_mutex_);
  dropped_.erase(owner);
}

void ParameterStore::TellDropped() {
  absl::MutexLock lock(&dropped_mutex_);
  for (const auto& [owner, tell] : dropped_) tell();
}

absl::Status ParameterStore::Snapshot(absl::string_view job_id, Due due) {
  absl::StatusOr<std::shared_ptr<Job>> claimed = Claim(job_id);
  if (!claimed.ok()) return claimed.status();
  if (*claimed == nullptr) return absl::OkStatus();
  Job& job = **claimed;
  std::shared_ptr<Shard> shard;
  std::shared_ptr<SnapshotHistory> history;
  std::optional<uint64_t> written;
  {
    absl::MutexLock lock(&mutex_);
    shard = job.shard;
    history = job.history;
    written = job.written_updates;
  }
  const absl::Time begun = options_.wait_clock->Now();
  const uint64_t updates = shard->updates();
  const bool is_due = shard->initialized() && (!written.has_value() || (due == Due::kIfChanged && *written != updates));
  absl::Status status = is_due ? history->Write(*shard, /*sealed=*/false) : absl::OkStatus();
  {
    absl::MutexLock lock(&mutex_);
    if (is_due && status.ok()) {
      job.written_updates = updates;
      job.snapshot_took = options_.wait_clock->Now() - begun;
      ++snapshots_;
    }
    if (!status.ok()) ++snapshot_failures_;
    if (job.written_updates == updates) job.same_on_disk = begun;
  }
  Release(job);
  return status;
}

absl::StatusOr<std::shared_ptr<Shard>> ParameterStore::ShardOf(absl::string_view job_id) const {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end() || (found->second->shard == nullptr && !found->second->sealed && found->second->lost.ok())) {
    return absl::NotFoundError(absl::StrCat("job ", job_id, " has no center on this server; attach to it first"));
  }
  const Job& job = *found->second;
  if (!job.lost.ok()) return job.lost;
  if (job.sealed)
    return absl::FailedPreconditionError(absl::StrCat("job ", job_id, " has ended; its center can only be pulled"));
  return job.shard;
}

absl::StatusOr<std::shared_ptr<ParameterStore::Job>> ParameterStore::Claim(absl::string_view job_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return nullptr;
  std::shared_ptr<Job> job = found->second;
  // An unloaded shard has not changed, so the caller need not wait until it is loaded.
  if (job->unloaded) return nullptr;
  if (!AwaitIdle(*job)) {
    return absl::UnavailableError(absl::StrCat("a snapshot of job ", job_id, " is still being written; try again"));
  }
  if (job->shard == nullptr) return nullptr;
  job->busy = true;
  return job;
}

bool ParameterStore::AwaitIdle(const Job& job) const {
  const auto idle = [&job]() { return !job.busy; };
  return mutex_.AwaitWithTimeout(absl::Condition(&idle), kJobBusyMax);
}

void ParameterStore::Release(Job& job) {
  absl::MutexLock lock(&mutex_);
  job.busy = false;
}

std::shared_ptr<SnapshotHistory> ParameterStore::MakeHistory(const std::string& job_id,
                                                             const std::vector<uint64_t>& numbers) const {
  return std::make_shared<SnapshotHistory>(SnapshotHistory::Options{options_.storage, options_.logger, job_id},
                                           numbers);
}

ParameterFigures ParameterStore::Figures() const {
  ParameterFigures figures;
  std::vector<std::shared_ptr<Shard>> shards;
  const absl::Time now = options_.wait_clock->Now();
  {
    absl::MutexLock lock(&mutex_);
    figures.snapshots = snapshots_;
    figures.snapshot_failures = snapshot_failures_;
    for (const auto& [job_id, job] : jobs_) {
      if (job->shard == nullptr) continue;
      shards.push_back(job->shard);
      ShardFigures& shard = figures.shards.emplace_back();
      shard.job_id = job_id;
      shard.memory_bytes = job->memory_bytes;
      if (job->same_on_disk.has_value()) shard.snapshot_age = now - *job->same_on_disk;
      shard.snapshot_took = job->snapshot_took;
    }
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    figures.shards[i].updates = shards[i]->updates();
    figures.shards[i].exchanges = shards[i]->meter().Read();
  }
  return figures;
}

uint64_t ParameterStore::center_bytes() const {
  absl::MutexLock lock(&mutex_);
  return center_bytes_;
}

ParameterStore::DiskUse ParameterStore::disk_use() const {
  DiskUse use;
  struct Held {
    std::string job_id;
    bool in_memory = false;
    std::shared_ptr<SnapshotHistory> history;
  };
  std::vector<Held> held;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [job_id, job] : jobs_) {
      if (job->sealed || absl::IsUnavailable(job->lost)) ++use.centers;
      held.push_back({job_id, !job->sealed && job->lost.ok(), job->history});
    }
  }
  for (Held& job : held) {
    const uint64_t bytes = job.history->bytes() + states_->bytes(job.job_id);
    use.bytes += bytes;
    if (!job.in_memory) use.jobs.emplace_back(std::move(job.job_id), bytes);
  }
  return use;
}

std::vector<std::string> ParameterStore::jobs() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [job_id, job] : jobs_) {
    if (job->shard != nullptr || job->unloaded) ids.push_back(job_id);
  }
  return ids;
}

}  // namespace hooke
