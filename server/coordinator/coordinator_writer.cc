// The Coordinator's writer: the one thread that stores, logs and keeps profiles. And the histories that it writes and
// reads.

#include <spdlog/spdlog.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "job/job_state.h"
#include "server/coordinator/coordinator.h"

namespace hooke {
namespace {

constexpr absl::Duration kStoreRetry = absl::Seconds(1);

}  // namespace

void Coordinator::WriteUntilEnd() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      while (!ending_ && !HasWork()) writer_wakes_.WaitUntil(mutex_, absl::InfiniteFuture());
      if (!HasWork()) return;
    }
    WriteOnce();
  }
}

// Returns whether the writer has work now. The coordinator has no clock of its own, so `latest_`, which moves with each
// tick, decides whether the store may be tried again.
bool Coordinator::HasWork() const {
  return queue_.HasWork(latest_.steady >= store_retry_at_) || history_.IsDue(latest_.steady) ||
         !histories_wanted_.empty();
}

void Coordinator::WriteHere() {
  if (options_.writer == CoordinatorOptions::Writer::kThread) return;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (!HasWork()) return;
    }
    WriteOnce();
  }
}

void Coordinator::WriteOnce() {
  WriteBatch batch;
  {
    absl::MutexLock lock(&mutex_);
    const auto find = [this](const std::string& job_id)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return state_.jobs().FindRecord(job_id); };
    batch = queue_.Take(latest_.steady >= store_retry_at_, find, latest_.wall);
    if (history_.IsDue(latest_.steady)) batch.history = history_.Take();
    batch.read_histories = std::exchange(histories_wanted_, {});
  }
  const Journal::Result result = journal_.Write(batch);
  {
    absl::MutexLock lock(&mutex_);
    Finish(batch, result);
  }
  TellReady();
}

void Coordinator::Finish(const WriteBatch& batch, const Journal::Result& result) {
  if (!batch.history.empty()) {
    const auto has_ended = [this](const std::string& job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const JobRecord* job = state_.jobs().FindRecord(job_id);
      return job == nullptr || HasEnded(job->state);
    };
    history_.Done(result.history.ok(), latest_.steady, has_ended);
  }
  if (!batch.read_histories.empty()) histories_read_ = result.histories;
  const uint64_t stored_before = queue_.stored();
  queue_.Done(result.changes.ok());
  if (batch.ChangesRecords()) {
    store_status_ = result.changes;
    if (!result.changes.ok()) ++store_failures_;
    store_retry_at_ = result.changes.ok() ? -absl::InfiniteDuration() : latest_.steady + kStoreRetry;
  }
  for (auto& [id, session] : sessions_) {
    if (queue_.stored() == stored_before) break;  // No command waits for log lines and profiles.
    session.outbox.Stored(queue_.stored());
    if (session.outbox.HasReady()) MarkReady(id);
  }
  for (const JobRecord& job : batch.submissions) {
    state_.EndSubmit(job, result.submissions.ok(), latest_);
    if (!result.submissions.ok()) ++store_failures_;
    auto waiting = submitting_.find(job.job_id);
    if (waiting != submitting_.end()) waiting->second = result.submissions;
  }
  Apply(latest_);
  written_.SignalAll();
}

// ---- Histories ----

void Coordinator::LoadHistories() {
  for (const auto& [number, job] : state_.jobs()) {
    const JobRecord& record = job.record;
    if (HasEnded(record.state)) continue;
    absl::StatusOr<std::map<SeriesKey, StoredSeries>> stored = journal_.ReadHistory(record.job_id);
    if (stored.ok()) {
      history_.Load(record.job_id, record.spec.groups().count(), *stored);
    } else {
      options_.logger->warn("job {} begins a new history: {}", record.job_id, stored.status().ToString());
    }
  }
}

// The history of a job that has ended is in the store, which only the writer may read.
absl::StatusOr<std::vector<v1::HistoryPoint>> Coordinator::ReadHistory(const std::string& job_id,
                                                                       int64_t since_unix_ms) {
  const absl::Time deadline = SteadyTime() + options_.store_timeout;
  std::vector<v1::HistoryPoint> points;
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status known = state_.jobs().CheckKnown(job_id); !known.ok()) return known;
    if (history_.Has(job_id)) return history_.Points(job_id, since_unix_ms);
    histories_read_.erase(job_id);
    histories_wanted_.insert(job_id);
    writer_wakes_.SignalAll();
  }
  WriteHere();
  absl::MutexLock lock(&mutex_);
  while (histories_read_.count(job_id) == 0) {
    // Another reader's batch may have replaced what was read for this one.
    histories_wanted_.insert(job_id);
    writer_wakes_.SignalAll();
    if (Wait(written_, deadline) || histories_read_.count(job_id) > 0) continue;
    return absl::InternalError(absl::StrCat("the job store has not answered for ",
                                            absl::FormatDuration(options_.store_timeout),
                                            ": check the coordinator's disk, then try again"));
  }
  // Takes the result out of the map. A second reader of the same job's history makes the writer read it again.
  const absl::StatusOr<std::map<SeriesKey, StoredSeries>> read = std::move(histories_read_.extract(job_id).mapped());
  if (!read.ok()) return read.status();
  for (const auto& [series, stored] : *read) {
    for (const std::vector<HistoryPoint>* part : {&stored.older, &stored.newer}) {
      for (const HistoryPoint& point : PointsAfter(*part, since_unix_ms)) points.push_back(ToMessage(series, point));
    }
  }
  if (!read->empty()) return points;
  const JobRecord* job = state_.jobs().FindRecord(job_id);
  const bool goes_on = job != nullptr && !HasEnded(job->state);
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job_id, " has no points in its history",
                   goes_on ? " yet: it has some about a second after its first step"
                           : ": it ended before its first steps, or an older version of Hooke ran it"));
}

}  // namespace hooke
