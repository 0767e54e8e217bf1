// The Coordinator's writer: the one thread that stores, logs and keeps profiles.

#include <spdlog/spdlog.h>

#include <cstdint>
#include <utility>

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
bool Coordinator::HasWork() const { return queue_.HasWork(latest_.steady >= store_retry_at_); }

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
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return state_.Find(job_id); };
    batch = queue_.Take(latest_.steady >= store_retry_at_, find, latest_.wall);
  }
  const Journal::Result result = journal_.Write(batch);
  {
    absl::MutexLock lock(&mutex_);
    Finish(batch, result);
  }
  TellReady();
}

void Coordinator::Finish(const WriteBatch& batch, const Journal::Result& result) {
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

}  // namespace hooke
