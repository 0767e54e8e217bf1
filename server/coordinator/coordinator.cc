#include "server/coordinator/coordinator.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "job/job_state.h"

namespace hooke {
namespace {

constexpr absl::Duration kProfilesWithin = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Create(CoordinatorOptions options, Instant now) {
  absl::StatusOr<std::unique_ptr<JobStore>> store = JobStore::Open(options.store);
  if (!store.ok()) return store.status();
  absl::StatusOr<StoredJobs> stored = (*store)->Load();
  if (!stored.ok()) return stored.status();
  const absl::StatusOr<uint64_t> highest = options.log->HighestNumber();
  if (!highest.ok()) return highest.status();
  options.logger->info("coordinator: {} jobs are stored", stored->jobs.size());
  ClusterState state(options.cluster, *std::move(stored), now);
  // New jobs get higher numbers than any job that has a log, because logs and centers stay if the store is moved away.
  state.ReserveNumbers(*highest);
  std::unique_ptr<Coordinator> coordinator(
      new Coordinator(std::move(options), *std::move(store), std::move(state), now));
  coordinator->AfterChange();
  return coordinator;
}

Coordinator::Coordinator(CoordinatorOptions options, std::unique_ptr<JobStore> store, ClusterState state, Instant now)
    : options_(std::move(options)),
      journal_(std::move(store), options_.log, options_.profiles, options_.logger),
      state_(std::move(state)),
      queue_(options_.queue),
      latest_(now) {
  {
    absl::MutexLock lock(&mutex_);
    LoadHistories();
    Apply(now);
  }
  if (options_.writer == CoordinatorOptions::Writer::kThread) writer_ = std::thread([this] { WriteUntilEnd(); });
}

Coordinator::~Coordinator() {
  Stop();
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    // The writer must try one last time to write to the store, even if a write failed a moment ago.
    store_retry_at_ = -absl::InfiniteDuration();
    history_.Hurry();
    writer_wakes_.SignalAll();
  }
  if (writer_.joinable()) writer_.join();
}

// ---- Users ----

absl::StatusOr<std::string> Coordinator::Submit(const v1::SubmitRequest& request, Instant now) {
  std::string job_id;
  {
    absl::MutexLock lock(&mutex_);
    absl::StatusOr<ClusterState::Submission> submission = state_.BeginSubmit(request, now);
    if (!submission.ok()) return submission.status();
    job_id = submission->job_id;
    if (!submission->is_new) return job_id;
    submitting_[job_id];
    Apply(now);
  }
  AfterChange();
  return AwaitSubmission(job_id);
}

absl::StatusOr<std::string> Coordinator::AwaitSubmission(const std::string& job_id) {
  const absl::Time deadline = SteadyTime() + options_.store_timeout;
  absl::MutexLock lock(&mutex_);
  while (!submitting_.at(job_id).has_value()) {
    if (Wait(written_, deadline) || submitting_.at(job_id).has_value()) continue;
    // A submission that the writer has not taken yet is withdrawn. If the writer has it, Finish will tell `state_` what
    // became of it.
    if (const std::optional<JobRecord> withdrawn = queue_.WithdrawSubmission(job_id); withdrawn.has_value()) {
      state_.EndSubmit(*withdrawn, false, latest_);
    }
    submitting_.erase(job_id);
    return absl::InternalError(absl::StrCat("the job store has not answered for ",
                                            absl::FormatDuration(options_.store_timeout),
                                            ": check the coordinator's disk, then try again"));
  }
  const absl::Status stored = *std::move(submitting_.extract(job_id).mapped());
  if (stored.ok()) return job_id;
  return absl::Status(stored.code(), absl::StrCat("the job could not be stored: ", stored.message()));
}

absl::StatusOr<v1::JobStatus> Coordinator::Cancel(const std::string& job_id, Instant now) {
  {
    absl::MutexLock lock(&mutex_);
    absl::Status status = state_.Cancel(job_id, now);
    if (!status.ok()) return status;
    Apply(now);
  }
  AfterChange();
  absl::Status stored = AwaitStored(job_id, {absl::StrCat("job ", job_id, " is told to stop"), "cancel it again"});
  if (!stored.ok()) return stored;
  return Status(job_id, now);
}

absl::StatusOr<v1::JobStatus> Coordinator::Scale(const v1::ScaleJobRequest& request, Instant now) {
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status status = state_.Scale(request, now); !status.ok()) return status;
    Apply(now);
  }
  AfterChange();
  absl::Status stored = AwaitStored(
      request.job_id(), {absl::StrCat("job ", request.job_id(), " changes its number of groups"), "say it again"});
  if (!stored.ok()) return stored;
  return Status(request.job_id(), now);
}

absl::StatusOr<Coordinator::Resumed> Coordinator::Resume(const std::string& job_id, Instant now) {
  Resumed resumed;
  {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<uint32_t> groups = state_.Resume(job_id, now);
    if (!groups.ok()) return groups.status();
    resumed.groups = *groups;
    resumed.job = StatusOf(*state_.jobs().Find(job_id), now);
    Apply(now);
  }
  AfterChange();
  absl::Status stored = AwaitStored(job_id, {absl::StrCat("job ", job_id, " goes on"), "resume it again"});
  if (!stored.ok()) return stored;
  return resumed;
}

absl::StatusOr<v1::JobStatus> Coordinator::Forget(const std::string& job_id, Instant now) {
  absl::StatusOr<v1::JobStatus> last;
  {
    absl::MutexLock lock(&mutex_);
    if (const known::Job* job = state_.jobs().Find(job_id); job != nullptr) last = StatusOf(*job, now);
    if (absl::Status status = state_.Forget(job_id, now); !status.ok()) return status;
    Apply(now);
  }
  AfterChange();
  absl::Status stored = AwaitStored(
      job_id, {absl::StrCat("job ", job_id, " is forgotten"), "if `hooke jobs` lists it later, forget it again"});
  if (!stored.ok()) return stored;
  return last;
}

absl::StatusOr<v1::NodeStatus> Coordinator::Drain(const std::string& worker, v1::Drain drain, Instant now) {
  absl::StatusOr<v1::NodeStatus> node;
  {
    absl::MutexLock lock(&mutex_);
    node = state_.Drain(worker, drain, now);
    if (!node.ok()) return node;
    Apply(now);
  }
  AfterChange();
  absl::MutexLock lock(&mutex_);
  const char* what = drain == v1::DRAIN_NONE ? " gets groups again" : " gets no more groups";
  absl::Status stored =
      AwaitBatch(queue_.BatchOfDrain(worker), {absl::StrCat("worker ", worker, what), "say it again"});
  if (!stored.ok()) return stored;
  return node;
}

absl::Status Coordinator::AwaitStored(const std::string& job_id, const Change& change) {
  absl::MutexLock lock(&mutex_);
  return AwaitBatch(queue_.BatchOf(job_id), change);
}

absl::Status Coordinator::AwaitBatch(uint64_t batch, const Change& change) {
  const absl::Time deadline = SteadyTime() + options_.store_timeout;
  while (queue_.stored() < batch) {
    if (!store_status_.ok()) {
      return absl::Status(store_status_.code(),
                          absl::StrCat(change.what, ", but that could not be stored yet: ", store_status_.message(),
                                       ": see to the coordinator's disk, and ", change.advice));
    }
    if (!Wait(written_, deadline) && queue_.stored() < batch) {
      return absl::InternalError(absl::StrCat(change.what, ", but the job store has not answered for ",
                                              absl::FormatDuration(options_.store_timeout),
                                              ": see to the coordinator's disk, and ", change.advice));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::JobStatus> Coordinator::Status(const std::string& job_id, Instant now) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<const known::Job*> job = state_.jobs().Known(job_id);
  if (!job.ok()) return job.status();
  return StatusOf(**job, now);
}

absl::StatusOr<v1::ReadStartsResponse> Coordinator::Starts(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<const known::Job*> job = state_.jobs().Known(job_id);
  if (!job.ok()) return job.status();
  return StartsOf((*job)->record);
}

JobList Coordinator::List(size_t bytes_max, Instant now) {
  absl::MutexLock lock(&mutex_);
  return ListJobs(state_.jobs(), bytes_max, now);
}

JobRows Coordinator::RowsSince(uint64_t version, size_t rows_max) {
  absl::MutexLock lock(&mutex_);
  return hooke::RowsSince(state_.jobs(), version, rows_max);
}

absl::StatusOr<Coordinator::JobView> Coordinator::View(const std::string& job_id, uint64_t version, Instant now) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<const known::Job*> found = state_.jobs().Known(job_id);
  if (!found.ok()) return found.status();
  const known::Job& job = **found;
  JobView view;
  view.version = job.changes;
  view.row = RowOf(job);
  if (view.version != version) view.status = StatusOf(job, now);
  return view;
}

std::vector<v1::NodeStatus> Coordinator::Nodes(Instant now) {
  absl::MutexLock lock(&mutex_);
  return state_.Nodes(now);
}

std::vector<v1::NodeLink> Coordinator::Links() {
  absl::MutexLock lock(&mutex_);
  return state_.Links();
}

CoordinatorFigures Coordinator::Figures(const FigureLimits& limits, Instant now) {
  absl::MutexLock lock(&mutex_);
  return {state_.Figures(limits, now), store_failures_, store_status_.ok()};
}

absl::StatusOr<v1::FileSet> Coordinator::FilesOf(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<const known::Job*> found = state_.jobs().Known(job_id);
  if (!found.ok()) return found.status();
  const JobRecord& job = (*found)->record;
  if (!job.spec.command().has_files()) return absl::NotFoundError(absl::StrCat("job ", job_id, " has no files"));
  if (HasEnded(job.state)) return absl::FailedPreconditionError(absl::StrCat("job ", job_id, " has ended"));
  return job.spec.command().files();
}

std::vector<v1::FileSet> Coordinator::FilesOfAll() {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::FileSet> files;
  for (const auto& [number, job] : state_.jobs()) {
    if (!HasEnded(job.record.state) && job.record.spec.command().has_files()) {
      files.push_back(job.record.spec.command().files());
    }
  }
  return files;
}

absl::StatusOr<LogText> Coordinator::ReadLog(const std::string& job_id, uint64_t offset, uint64_t bytes_max) {
  {
    absl::MutexLock lock(&mutex_);
    // This check comes first, because the log uses the id as a file's name.
    if (absl::Status known = state_.jobs().CheckKnown(job_id); !known.ok()) return known;
  }
  return options_.log->Read(job_id, offset, bytes_max);
}

absl::StatusOr<LogText> Coordinator::ReadLogEnd(const std::string& job_id, uint64_t bytes_max) {
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status known = state_.jobs().CheckKnown(job_id); !known.ok()) return known;
  }
  return options_.log->ReadEnd(job_id, bytes_max);
}

absl::StatusOr<std::vector<ProfileKey>> Coordinator::ListProfiles(const std::string& job_id) {
  bool ended = false;
  {
    absl::MutexLock lock(&mutex_);
    // This check comes first, because the profiles' store uses the id as a folder's name.
    const absl::StatusOr<const known::Job*> job = state_.jobs().Known(job_id);
    if (!job.ok()) return job.status();
    ended = HasEnded((*job)->record.state);
    // A user who has seen the end expects the last profiles. The wait is short, because no more will come.
    const absl::Time deadline = SteadyTime() + kProfilesWithin;
    while (ended && queue_.HasProfilesOf(job_id) && Wait(written_, deadline)) {
    }
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
  return state_.LogHasEnded(job_id) && !queue_.HasLogOf(job_id);
}

uint64_t Coordinator::WaitForChange(const std::string& job_id, uint64_t seen, absl::Duration timeout) {
  const absl::Time deadline = SteadyTime() + timeout;
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Watch>& entry = watches_[job_id];
  if (entry == nullptr) entry = std::make_shared<Watch>();
  const std::shared_ptr<Watch> watch = entry;
  ++watch->watchers;
  while (!stopped_ && state_.jobs().ChangesOf(job_id) == seen) {
    if (!Wait(watch->changed, deadline)) break;
  }
  if (--watch->watchers == 0) watches_.erase(job_id);
  return state_.jobs().ChangesOf(job_id);
}

// ---- Daemons ----

void Coordinator::SetOwnServer(const std::string& server_id) {
  absl::MutexLock lock(&mutex_);
  state_.SetOwnServer(server_id);
}

absl::StatusOr<SessionId> Coordinator::Hello(const v1::WorkerHello& hello, Instant now) {
  absl::StatusOr<SessionId> session;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return absl::UnavailableError("the coordinator is stopping: try again");
    session = state_.Hello(hello, now);
    if (session.ok()) sessions_[*session];
    Apply(now);
  }
  AfterChange();
  return session;
}

absl::Status Coordinator::Message(SessionId session, const v1::WorkerMessage& message, Instant now) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = state_.Message(session, message, now);
    Apply(now);
  }
  AfterChange();
  return status;
}

void Coordinator::Gone(SessionId session, Instant now) {
  {
    absl::MutexLock lock(&mutex_);
    state_.Gone(session, now);
    sessions_.erase(session);
    ready_.erase(session);
    Apply(now);
  }
  AfterChange();
}

absl::StatusOr<v1::ServerHeartbeatResponse> Coordinator::ServerHeartbeat(const v1::ServerHeartbeatRequest& request,
                                                                         Instant now) {
  absl::StatusOr<v1::ServerHeartbeatResponse> response;
  {
    absl::MutexLock lock(&mutex_);
    response = state_.ServerHeartbeat(request, now);
    Apply(now);
    if (response.ok()) {
      // The answer names no forgotten job whose removal is not stored yet. If the coordinator died before that, it
      // would later list a job whose center is gone.
      auto& forgotten = *response->mutable_forgotten_jobs();
      const auto waits = [this](const v1::ForgottenJob& job)
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.BatchOf(job.job_id()) > 0; };
      forgotten.erase(std::remove_if(forgotten.begin(), forgotten.end(), waits), forgotten.end());
      // It names no generation as ended before the change of the job's groups is stored. If the coordinator died before
      // that, it would start the old groups again, and the servers would refuse them.
      auto& closing = *response->mutable_closing();
      const auto unstored = [this](const v1::GenerationEnd& end)
                                ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return queue_.BatchOf(end.job_id()) > 0; };
      closing.erase(std::remove_if(closing.begin(), closing.end(), unstored), closing.end());
    }
  }
  AfterChange();
  return response;
}

absl::StatusOr<v1::SiteHeartbeatResponse> Coordinator::SiteHeartbeat(const v1::SiteHeartbeatRequest& request,
                                                                     Instant now) {
  absl::StatusOr<v1::SiteHeartbeatResponse> response;
  {
    absl::MutexLock lock(&mutex_);
    response = state_.SiteHeartbeat(request, now);
    Apply(now);
  }
  AfterChange();
  return response;
}

std::vector<ServerDial> Coordinator::TakeDials() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(dials_, {});
}

void Coordinator::ServerDialed(const ServerDial& dial, const DialAnswer& answer, Instant now) {
  {
    absl::MutexLock lock(&mutex_);
    state_.ServerDialed(dial, answer, now);
    Apply(now);
  }
  AfterChange();
}

void Coordinator::AfterChange() {
  TellReady();
  WriteHere();
}

// ---- Time ----

void Coordinator::Tick(Instant now) {
  {
    absl::MutexLock lock(&mutex_);
    state_.Tick(now);
    Apply(now);
  }
  AfterChange();
}

void Coordinator::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    for (const auto& [id, session] : sessions_) MarkReady(id);
    for (auto& [job_id, watch] : watches_) watch->changed.SignalAll();
  }
  TellReady();
}

bool Coordinator::stopped() {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

bool Coordinator::Wait(SteadyCondition& signal, absl::Time deadline) {
  if (SteadyTime() >= deadline) return false;
  signal.WaitUntil(mutex_, deadline);
  return true;
}

// ---- Effects ----

void Coordinator::Apply(Instant now) {
  latest_ = now;
  for (Effects effects = state_.TakeEffects(); !effects.empty(); effects = state_.TakeEffects()) {
    for (const std::string& job_id : effects.shown) {
      auto watch = watches_.find(job_id);
      if (watch != watches_.end()) watch->second->changed.SignalAll();
    }
    for (ServerDial& dial : effects.dials) dials_.push_back(std::move(dial));
    for (const HistoryEntry& point : effects.points) history_.Add(point, now.steady);
    for (const auto& [job_id, job] : effects.forgotten) history_.Forget(job_id);
    queue_.Add(effects);
    Deliver(effects, now);  // Deliver may end a session, which has effects of its own. Hence the loop.
  }
  if (HasWork()) writer_wakes_.SignalAll();
}

}  // namespace hooke
