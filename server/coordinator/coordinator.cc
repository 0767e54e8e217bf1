#include "server/coordinator/coordinator.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/job_state.h"

namespace hooke {
namespace {

// Longer than this a disk does not take, unless it is broken.
constexpr absl::Duration kStoreTimeout = absl::Seconds(10);
constexpr absl::Duration kStoreRetry = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Create(CoordinatorOptions options, absl::Time now) {
  absl::StatusOr<std::vector<JobRecord>> jobs = options.store->Load();
  if (!jobs.ok()) return jobs.status();
  const absl::StatusOr<uint64_t> highest = options.log->HighestNumber();
  if (!highest.ok()) return highest.status();
  options.logger->info("coordinator: {} jobs are stored", jobs->size());
  std::unique_ptr<Coordinator> coordinator(new Coordinator(std::move(options), *std::move(jobs), *highest, now));
  coordinator->Flush(now);
  return coordinator;
}

Coordinator::Coordinator(CoordinatorOptions options, std::vector<JobRecord> jobs, uint64_t highest_number,
                         absl::Time now)
    : options_(std::move(options)), state_(options_.cluster, std::move(jobs), now) {
  state_.ReserveNumbers(highest_number);
}

absl::StatusOr<std::string> Coordinator::Submit(const v1::SubmitRequest& request, absl::Time now) {
  absl::StatusOr<ClusterState::Submission> submission;
  bool may_write = false;
  {
    absl::MutexLock lock(&mutex_);
    submission = state_.BeginSubmit(request, now);
    if (!submission.ok()) return submission.status();
    if (!submission->is_new) return submission->job_id;
    const auto turn = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !writing_ && !batch_is_next_; };
    ++submits_waiting_;
    may_write = mutex_.AwaitWithTimeout(absl::Condition(&turn), kStoreTimeout);
    --submits_waiting_;
    if (may_write) {
      writing_ = true;
    } else {
      state_.EndSubmit(submission->job, false, now);
    }
  }
  if (!may_write) {
    Flush(now);  // A batch may have waited for this submission.
    return absl::InternalError("the job store has not answered for 10 s: check the coordinator's disk, then try again");
  }
  const absl::Status stored = options_.store->Put({submission->job});
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    batch_is_next_ = true;
    state_.EndSubmit(submission->job, stored.ok(), now);
  }
  Flush(now);
  if (!stored.ok()) {
    options_.logger->error("job {} is refused: {}", submission->job_id, stored.ToString());
    return absl::Status(stored.code(), absl::StrCat("the job could not be stored: ", stored.message()));
  }
  return submission->job_id;
}

absl::StatusOr<v1::JobStatus> Coordinator::Cancel(const std::string& job_id, absl::Time now) {
  {
    absl::MutexLock lock(&mutex_);
    absl::Status status = state_.Cancel(job_id, now);
    if (!status.ok()) return status;
  }
  Flush(now);
  absl::Status stored = WaitUntilStored(job_id);
  if (!stored.ok()) return stored;
  return Status(job_id, now);
}

absl::Status Coordinator::WaitUntilStored(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  // In the batch that was taken last, or else in the next one.
  const uint64_t batch = batches_taken_ + (pending_.jobs.count(job_id) > 0 ? 1 : 0);
  const auto settled = [this, batch]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return batches_done_ >= batch || !store_status_.ok();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&settled), kStoreTimeout)) {
    return absl::InternalError("done, but the job store has not answered for 10 s: check the coordinator's disk");
  }
  if (store_status_.ok()) return absl::OkStatus();
  return absl::Status(store_status_.code(), absl::StrCat("done, but not stored yet: ", store_status_.message()));
}

absl::StatusOr<v1::JobStatus> Coordinator::Status(const std::string& job_id, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  return state_.Status(job_id, now);
}

std::vector<v1::JobStatus> Coordinator::List(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  return state_.List(now);
}

std::vector<v1::NodeStatus> Coordinator::Nodes(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  return state_.Nodes(now);
}

absl::StatusOr<LogText> Coordinator::ReadLog(const std::string& job_id, uint64_t offset, uint64_t bytes_max) {
  {
    absl::MutexLock lock(&mutex_);
    // Before the name becomes a file's.
    absl::Status known = state_.Status(job_id, absl::UnixEpoch()).status();
    if (!known.ok()) return known;
  }
  return options_.log->Read(job_id, offset, bytes_max);
}

absl::StatusOr<std::vector<ProfileKey>> Coordinator::ListProfiles(const std::string& job_id) {
  bool ended = false;
  {
    absl::MutexLock lock(&mutex_);
    absl::StatusOr<v1::JobStatus> job =
        state_.Status(job_id, absl::UnixEpoch());  // Before the name becomes a folder's.
    if (!job.ok()) return job.status();
    ended = HasEnded(job->state());
  }
  std::vector<ProfileKey> keys;
  if (options_.profiles != nullptr) keys = options_.profiles->List(job_id);
  if (!keys.empty()) return keys;
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job_id, " has no profile",
                   ended ? ": it ended before its first steps, or its profile made room for newer ones"
                         : " yet: it has one some seconds after its first step"));
}

bool Coordinator::LogIsComplete(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  if (!state_.LogHasEnded(job_id) || jobs_being_logged_.count(job_id) > 0) return false;
  CollectEffects();
  if (dropped_.count(job_id) > 0) return false;
  return std::none_of(pending_.log.begin(), pending_.log.end(),
                      [&job_id](const Effects::LogEntry& entry) { return entry.job_id == job_id; });
}

uint64_t Coordinator::WaitForChange(const std::string& job_id, uint64_t seen, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto changed = [&]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_ || state_.Version(job_id) != seen; };
  mutex_.AwaitWithTimeout(absl::Condition(&changed), timeout);
  return state_.Version(job_id);
}

void Coordinator::SetOwnServer(const std::string& address) {
  absl::MutexLock lock(&mutex_);
  state_.SetOwnServer(address);
}

absl::StatusOr<SessionId> Coordinator::Hello(const v1::WorkerHello& hello, absl::Time now) {
  absl::StatusOr<SessionId> session;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return absl::UnavailableError("the coordinator is stopping: try again");
    session = state_.Hello(hello, now);
    if (session.ok()) outboxes_[*session];
  }
  Flush(now);
  return session;
}

absl::Status Coordinator::Message(SessionId session, const v1::WorkerMessage& message, absl::Time now) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = state_.Message(session, message, now);
  }
  Flush(now);
  return status;
}

void Coordinator::Gone(SessionId session, absl::Time now) {
  {
    absl::MutexLock lock(&mutex_);
    state_.Gone(session, now);
    outboxes_.erase(session);
  }
  Flush(now);
}

absl::StatusOr<std::vector<std::string>> Coordinator::ServerHeartbeat(const v1::ServerHeartbeatRequest& request,
                                                                      absl::Time now) {
  absl::StatusOr<std::vector<std::string>> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended = state_.ServerHeartbeat(request, now);
  }
  Flush(now);
  return ended;
}

Coordinator::Outgoing Coordinator::TakeCommands(SessionId session, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto ready = [this, session]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto found = outboxes_.find(session);
    return stopped_ || found == outboxes_.end() || found->second.HasSomething();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&ready), timeout);
  Outgoing outgoing;
  auto found = outboxes_.find(session);
  if (found == outboxes_.end()) return {{}, false};
  Outbox& outbox = found->second;
  for (v1::WorkerCommand& command : std::exchange(outbox.commands, {})) outgoing.commands.push_back(std::move(command));
  for (const auto& [key, number] : std::exchange(outbox.seen, {})) {
    v1::EventsSeen* seen = outgoing.commands.emplace_back().mutable_seen();
    seen->mutable_group()->set_job_id(key.job_id);
    seen->mutable_group()->set_group(key.group);
    seen->mutable_group()->set_incarnation(key.incarnation);
    seen->set_number(number);
  }
  outgoing.open = outbox.open && !stopped_;
  return outgoing;
}

void Coordinator::Tick(absl::Time now) {
  {
    absl::MutexLock lock(&mutex_);
    state_.Tick(now);
  }
  Flush(now);
}

void Coordinator::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

bool Coordinator::stopped() {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

void Coordinator::Flush(absl::Time now) {
  for (int i = 0; i < kBatchesPerCall; ++i) {
    std::optional<Batch> batch = TakeBatch(now);
    if (!batch.has_value()) return;
    const absl::Status stored = Write(*batch);
    Finish(*std::move(batch), stored, now);
  }
}

void Coordinator::CollectEffects() {
  pending_.Append(state_.TakeEffects());
  if (pending_.log.size() <= options_.pending_log_max) return;
  for (size_t i = options_.pending_log_max; i < pending_.log.size(); ++i) ++dropped_[pending_.log[i].job_id];
  pending_.log.resize(options_.pending_log_max);
}

void Coordinator::LogDropped(Effects& effects, absl::Time now) {
  for (const auto& [job_id, lines] : std::exchange(dropped_, {})) {
    effects.log.push_back({job_id,
                           absl::StrCat("coordinator [", lines, " lines dropped: more than ", options_.pending_log_max,
                                        " waited to be written]"),
                           now, true});
  }
}

std::optional<Coordinator::Batch> Coordinator::TakeBatch(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  CollectEffects();
  // Whoever writes, or waits to write a submission, calls this afterwards, so nothing is left behind.
  if (writing_ || (submits_waiting_ > 0 && !batch_is_next_)) return std::nullopt;
  batch_is_next_ = false;
  if (pending_.empty()) return std::nullopt;
  const bool must_store = !pending_.jobs.empty() || !pending_.forgotten.empty();
  if (must_store && now < store_retry_at_) return std::nullopt;
  if (!must_store && pending_.log.empty() && pending_.profiles.empty()) {
    Deliver(std::exchange(pending_, {}), now);
    return std::nullopt;
  }
  Batch batch;
  batch.effects = std::exchange(pending_, {});
  LogDropped(batch.effects, now);
  for (const std::string& job_id : batch.effects.jobs) {
    // One that was forgotten meanwhile is to be removed instead.
    if (const JobRecord* job = state_.Find(job_id); job != nullptr) batch.jobs.push_back(*job);
  }
  for (const Effects::LogEntry& entry : batch.effects.log) jobs_being_logged_.insert(entry.job_id);
  writing_ = true;
  ++batches_taken_;
  return batch;
}

absl::Status Coordinator::Write(const Batch& batch) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const Effects::LogEntry& entry : batch.effects.log) {
    if (!entry.job_id.empty()) lines[entry.job_id].push_back(LogLine(entry.time, entry.line));
    if (entry.ours) options_.logger->info("{}{}{}", entry.job_id, entry.job_id.empty() ? "" : ": ", entry.line);
  }
  for (const auto& [job_id, text] : lines) {
    absl::Status logged = options_.log->Append(job_id, text);
    if (!logged.ok()) options_.logger->error("{} log lines are lost: {}", text.size(), logged.ToString());
  }
  WriteProfiles(batch);
  if (!batch.jobs.empty()) {
    if (absl::Status status = options_.store->Put(batch.jobs); !status.ok()) return status;
  }
  return Forget(batch.effects.forgotten);
}

absl::Status Coordinator::Forget(const std::set<std::string>& job_ids) {
  if (job_ids.empty()) return absl::OkStatus();
  absl::Status removed = options_.store->Remove({job_ids.begin(), job_ids.end()});
  if (!removed.ok()) return removed;
  for (const std::string& job_id : job_ids) {
    absl::Status gone = options_.log->Remove(job_id);
    if (!gone.ok()) options_.logger->warn("the log of {}, which is forgotten, stays: {}", job_id, gone.ToString());
  }
  return absl::OkStatus();
}

// One that is lost is no loss for the job.
void Coordinator::WriteProfiles(const Batch& batch) {
  if (options_.profiles == nullptr) return;
  for (const auto& [key, profile] : batch.effects.profiles) {
    absl::Status kept = options_.profiles->Put(key, profile);
    if (!kept.ok()) options_.logger->warn("{}: a profile is lost: {}", key.job_id, kept.ToString());
  }
}

void Coordinator::Finish(Batch batch, const absl::Status& stored, absl::Time now) {
  if (!stored.ok()) options_.logger->error("what has changed could not be stored, trying again: {}", stored.ToString());
  batch.effects.log.clear();
  batch.effects.profiles.clear();
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  batches_done_ = batches_taken_;
  jobs_being_logged_.clear();
  if (!batch.jobs.empty() || !batch.effects.forgotten.empty()) {
    store_status_ = stored;
    store_retry_at_ = stored.ok() ? absl::InfinitePast() : now + kStoreRetry;
  }
  if (stored.ok()) {
    Deliver(std::move(batch.effects), now);
    return;
  }
  batch.effects.Append(std::exchange(pending_, {}));
  pending_ = std::move(batch.effects);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): its commands are moved from.
void Coordinator::Deliver(Effects effects, absl::Time now) {
  const auto close = [this, now](SessionId session, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto outbox = outboxes_.find(session);
    if (outbox == outboxes_.end() || !outbox->second.open) return;
    outbox->second = Outbox{{}, {}, false};
    pending_.log.push_back({"", absl::StrCat("session ", session, " is ended: ", why), now, true});
    state_.Gone(session, now);
  };
  for (auto& [session, command] : effects.commands) {
    auto outbox = outboxes_.find(session);
    if (outbox == outboxes_.end() || !outbox->second.open) continue;
    outbox->second.commands.push_back(std::move(command));
    if (outbox->second.commands.size() > kOutboxMax) close(session, "the worker reads too slowly");
  }
  for (const auto& [where, number] : effects.seen) {
    auto outbox = outboxes_.find(where.first);
    if (outbox == outboxes_.end() || !outbox->second.open) continue;
    outbox->second.seen[where.second] = number;
    if (outbox->second.seen.size() > kOutboxMax) close(where.first, "the worker reads too slowly");
  }
  for (const auto& [session, why] : effects.closed) close(session, why);
}

}  // namespace hooke
