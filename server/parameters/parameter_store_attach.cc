// ParameterStore: how groups attach. The first one makes the job's shard, and the first one of a later generation has
// the center go on in another shard.

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/parameters/parameter_store.h"

namespace hooke {
namespace {

v1::AttachResponse::State ToState(AttachAnswer answer) {
  switch (answer) {
    case AttachAnswer::kReady:
      return v1::AttachResponse::READY;
    case AttachAnswer::kInitialize:
      return v1::AttachResponse::INITIALIZE;
    case AttachAnswer::kWait:
      break;
  }
  return v1::AttachResponse::WAIT;
}

// Returns the number that is higher in a later generation.
uint32_t GenerationOf(const ShardPlan& plan) { return plan.job.first_incarnation(); }

}  // namespace

absl::StatusOr<v1::AttachResponse> ParameterStore::Attach(absl::Time now, const v1::AttachRequest& request) {
  absl::StatusOr<ShardPlan> plan = PlanShard(request, options_.block_values);
  if (!plan.ok()) return plan.status();
  if (absl::Status status = Load(plan->job_id); !status.ok()) return status;
  const Speaker speaker = {request.sender().group(), request.sender().rank(), request.sender().incarnation()};
  // Before anything is made: a request that is wrong changes nothing.
  if (absl::Status status = CheckSpeakerOf(*plan, speaker); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Shard>> shard = FindOrCreate(*plan);
  if (shard.ok() && GenerationOf((*shard)->plan()) < GenerationOf(*plan)) shard = BeginGeneration(*plan);
  if (!shard.ok()) return shard.status();
  if (absl::Status status = CompareKeys((*shard)->plan().job.job_key(), *plan); !status.ok()) return status;
  if (const uint32_t present = GenerationOf((*shard)->plan()); present > GenerationOf(*plan)) {
    return GenerationOver(plan->job_id, present);
  }
  if (absl::Status status = ComparePlans((*shard)->plan(), *plan); !status.ok()) return status;
  absl::StatusOr<Shard::Attached> attached = (*shard)->Attach(now, speaker, options_.initialize_lease);
  if (!attached.ok()) return attached.status();
  if (attached->changed) {
    options_.logger->info("job {}: group {}, start {}, attaches: {}", plan->job_id, speaker.group, speaker.incarnation,
                          attached->reason);
  }
  // The first snapshot may have failed. Try again now: no group should train against a center that a crash would lose.
  if (attached->answer == AttachAnswer::kReady && !HasSnapshot(plan->job_id)) {
    if (absl::Status status = Snapshot(plan->job_id, Due::kIfNone); !status.ok()) return status;
  }
  v1::AttachResponse response;
  response.set_state(ToState(attached->answer));
  response.set_last_sequence(attached->last_sequence);
  response.set_block_values((*shard)->plan().partition.block_values());
  response.set_window_blocks((*shard)->plan().window_blocks);
  response.set_initialize_seconds(absl::ToDoubleSeconds(options_.initialize_lease));
  return response;
}

bool ParameterStore::HasSnapshot(absl::string_view job_id) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job_id);
  return found != jobs_.end() && found->second->written_updates.has_value();
}

absl::StatusOr<std::shared_ptr<Shard>> ParameterStore::FindOrCreate(const ShardPlan& plan) {
  std::shared_ptr<Job> job;
  {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<Job>& entry = jobs_[plan.job_id];
    if (entry != nullptr) {
      job = entry;
      const auto made = [&job]() { return !job->busy || job->shard != nullptr || job->sealed; };
      if (!mutex_.AwaitWithTimeout(absl::Condition(&made), kJobBusyMax)) {
        return absl::UnavailableError(
            absl::StrCat("the shard of job ", plan.job_id, " is still being made; try again"));
      }
      if (job->sealed) {
        if (absl::Status status = CompareKeys(job->key, plan); !status.ok()) return status;
      }
      return ShardOf(plan.job_id);
    }
    if (absl::Status status = ReserveMemory(plan); !status.ok()) {
      jobs_.erase(plan.job_id);
      return status;
    }
    job = entry = std::make_shared<Job>();
    job->busy = true;
    job->memory_bytes = plan.memory_bytes;
    job->history = MakeHistory(plan.job_id, {});
  }
  absl::StatusOr<std::unique_ptr<Shard>> shard = Shard::Create(plan, options_.wait_clock);
  absl::MutexLock lock(&mutex_);
  job->busy = false;
  if (!shard.ok()) {
    center_bytes_ -= job->memory_bytes;
    jobs_.erase(plan.job_id);
    return shard.status();
  }
  if (stopping_) (*shard)->StopWaiting();
  job->shard = *std::move(shard);
  return job->shard;
}

absl::Status ParameterStore::ReserveMemory(const ShardPlan& plan, uint64_t held) {
  const uint64_t free_bytes = options_.max_center_bytes - (center_bytes_ - held);
  if (plan.memory_bytes > free_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the shard of job ", plan.job_id, " needs ", plan.memory_bytes, " bytes; ", free_bytes, " of this server's ",
        options_.max_center_bytes, " are free; raise --max-center-bytes or add servers"));
  }
  center_bytes_ += plan.memory_bytes - held;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Shard>> ParameterStore::BeginGeneration(const ShardPlan& plan) {
  absl::StatusOr<std::shared_ptr<Job>> job = Claim(plan.job_id);
  if (!job.ok()) return job.status();
  if (*job == nullptr) {  // The job has ended meanwhile.
    absl::MutexLock lock(&mutex_);
    return ShardOf(plan.job_id);
  }
  absl::StatusOr<std::shared_ptr<Shard>> shard = BeginClaimed(plan, **job);
  Release(**job);
  return shard;
}

absl::StatusOr<std::shared_ptr<Shard>> ParameterStore::BeginClaimed(const ShardPlan& plan, Job& job) {
  std::shared_ptr<Shard> before;
  {
    absl::MutexLock lock(&mutex_);
    before = job.shard;
  }
  // Another group has begun the generation while this one waited.
  if (GenerationOf(before->plan()) >= GenerationOf(plan)) return before;
  const absl::StatusOr<ShardPlan> next = NextGeneration(before->plan(), plan);
  if (!next.ok()) return next.status();
  uint64_t held = 0;
  {
    absl::MutexLock lock(&mutex_);
    held = job.memory_bytes;
    if (absl::Status status = ReserveMemory(*next, held); !status.ok()) return status;
    job.memory_bytes = next->memory_bytes;
  }
  absl::StatusOr<std::shared_ptr<Shard>> made = Shard::Succeed(*next, *before);
  {
    absl::MutexLock lock(&mutex_);
    if (!made.ok()) {
      center_bytes_ -= std::exchange(job.memory_bytes, held) - held;
      return made.status();
    }
    if (stopping_) (*made)->StopWaiting();
    job.shard = *made;
    job.written_updates = std::nullopt;
    // A shard that was loaded from a snapshot has still lost what came after. The groups of this generation have made
    // no exchange before its first step.
    if (!job.origins.empty()) {
      const Origin first = {job.origins[0].snapshot, next->job.first_step()};
      job.origins.assign(next->job.groups(), first);
    }
  }
  before.reset();
  TellDropped();
  if (absl::Status status = states_->RemoveGroupsFrom(next->job_id, next->job.groups()); !status.ok()) {
    options_.logger->warn("states of groups that job {} no longer has stay until it ends: {}", next->job_id,
                          std::string(status.message()));
  }
  options_.logger->info("job {}: a new generation begins, with {} groups from step {} on, start {}", next->job_id,
                        next->job.groups(), next->job.first_step(), next->job.first_incarnation());
  return made;
}

absl::StatusOr<std::vector<GroupReached>> ParameterStore::EndGeneration(const std::string& job_id,
                                                                        absl::string_view job_key, uint32_t successor) {
  if (absl::Status status = Load(job_id); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Job>> job = Claim(job_id);
  if (!job.ok()) return job.status();
  std::shared_ptr<Shard> shard;
  {
    absl::MutexLock lock(&mutex_);
    absl::StatusOr<std::shared_ptr<Shard>> found = ShardOf(job_id);
    if (found.ok() && *job != nullptr) shard = *found;
    if (shard == nullptr) {
      // The shard of a job that was never here, or whose disk was lost, has nothing to say.
      if (absl::IsNotFound(found.status())) return std::vector<GroupReached>();
      return found.ok() ? absl::UnavailableError(absl::StrCat("the shard of job ", job_id, " is not loaded; try again"))
                        : found.status();
    }
  }
  const uint32_t present = GenerationOf(shard->plan());
  absl::Status allowed = CheckKey(job_id, shard->plan().job.job_key(), job_key);
  if (allowed.ok() && present >= successor) allowed = GenerationOver(job_id, present);
  std::vector<GroupReached> reached;
  if (allowed.ok()) reached = shard->EndGeneration(successor);
  Release(**job);
  if (!allowed.ok()) return allowed;
  TellDropped();  // Groups that are silent learn that their generation is over.
  if (absl::Status status = Snapshot(job_id, Due::kIfChanged); !status.ok()) return status;
  return reached;
}

}  // namespace hooke
