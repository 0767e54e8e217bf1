#include "mpi_group/issue_order/issue_order_pass.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {

IssueOrderPass::IssueOrderPass(const Shape& shape)
    : lanes_count_(shape.lanes), deadline_(shape.deadline), states_(shape.buckets), lanes_(shape.lanes) {
  absl::MutexLock lock(&mutex_);
  Restart();
}

void IssueOrderPass::Restart() {
  std::fill(states_.begin(), states_.end(), State::kIdle);
  for (size_t lane = 0; lane < lanes_.size(); ++lane) lanes_[lane].next = lane;
  done_ = 0;
}

void IssueOrderPass::SetReady(size_t bucket) {
  absl::MutexLock lock(&mutex_);
  MakeReady(bucket);
}

void IssueOrderPass::MakeReady(size_t bucket) {
  if (bucket >= states_.size()) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("bucket ", bucket, " was made ready; there are only ", states_.size(), " buckets")));
  }
  if (states_[bucket] != State::kIdle) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "bucket ", bucket, " of ", states_.size(), " was made ready twice; make each ready once between two Finish")));
  }
  states_[bucket] = State::kReady;
}

bool IssueOrderPass::Runnable(const Lane& lane) const {
  return !lane.working && lane.next < states_.size() && states_[lane.next] == State::kReady;
}

size_t IssueOrderPass::Take(Lane& lane) {
  lane.working = true;
  if (working_++ == 0) busy_since_ = SteadyNow();
  return lane.next;
}

std::optional<size_t> IssueOrderPass::AwaitNext(size_t lane) {
  absl::MutexLock lock(&mutex_);
  const auto decided = [this, lane]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Ended() || Runnable(lanes_[lane]); };
  mutex_.Await(absl::Condition(&decided));
  if (Ended()) return std::nullopt;
  return Take(lanes_[lane]);
}

std::optional<size_t> IssueOrderPass::TryNext(size_t lane) {
  absl::MutexLock lock(&mutex_);
  if (Ended() || !Runnable(lanes_[lane])) return std::nullopt;
  return Take(lanes_[lane]);
}

std::optional<size_t> IssueOrderPass::SetLast(absl::Span<const size_t> buckets) {
  if (buckets.empty()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  for (size_t bucket : buckets) MakeReady(bucket);
  CheckAllReady();
  if (Ended() || !Runnable(lanes_[0])) return std::nullopt;
  return Take(lanes_[0]);
}

void IssueOrderPass::Done(size_t bucket, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  Lane& lane = lanes_[bucket % lanes_count_];
  lane.working = false;
  lane.next += lanes_count_;
  if (--working_ == 0) times_.busy += SteadyNow() - busy_since_;
  if (!status.ok()) {
    return Fail(
        absl::Status(status.code(), absl::StrCat("bucket ", bucket, " of ", states_.size(), ": ", status.message())));
  }
  states_[bucket] = State::kDone;
  ++done_;
}

void IssueOrderPass::Fail(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
}

absl::Status IssueOrderPass::NotDone(size_t bucket) const {
  return absl::DeadlineExceededError(absl::StrCat("bucket ", bucket, " of ", states_.size(), " was not done within ",
                                                  absl::FormatDuration(deadline_)));
}

// A machine's clock that is set forward ends Abseil's wait early, so it waits again.
bool IssueOrderPass::AwaitOrDeadline(const absl::Condition& settled) {
  const absl::Time end = SteadyNow() + deadline_;
  while (!mutex_.AwaitWithTimeout(settled, end - SteadyNow())) {
    if (SteadyNow() >= end) return false;
  }
  return true;
}

absl::Status IssueOrderPass::Wait(size_t bucket) {
  absl::MutexLock lock(&mutex_);
  if (bucket >= states_.size() || states_[bucket] == State::kIdle) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("bucket ", bucket, " of ", states_.size(), " is waited for but was not made ready")));
  }
  const auto settled = [this, bucket]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !failure_.ok() || states_[bucket] == State::kDone;
  };
  if (!AwaitOrDeadline(absl::Condition(&settled))) Fail(NotDone(bucket));
  return failure_;
}

void IssueOrderPass::CheckAllReady() {
  for (size_t bucket = 0; bucket < states_.size() && failure_.ok(); ++bucket) {
    if (states_[bucket] != State::kIdle) continue;
    Fail(absl::InvalidArgumentError(absl::StrCat("bucket ", bucket, " of ", states_.size(),
                                                 " was not made ready before Finish; the other ranks wait for it")));
  }
}

absl::Status IssueOrderPass::Finish() {
  absl::MutexLock lock(&mutex_);
  CheckAllReady();
  const auto settled = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !failure_.ok() || done_ == states_.size(); };
  if (!AwaitOrDeadline(absl::Condition(&settled))) {
    // Names the lowest bucket that is ready and not done.
    Fail(NotDone(std::find(states_.begin(), states_.end(), State::kReady) - states_.begin()));
  }
  if (failure_.ok()) Restart();
  return failure_;
}

void IssueOrderPass::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void IssueOrderPass::AddWaited(absl::Duration waited) {
  absl::MutexLock lock(&mutex_);
  times_.waited += waited;
}

IssueTimes IssueOrderPass::times() const {
  absl::MutexLock lock(&mutex_);
  IssueTimes times = times_;
  if (working_ > 0) times.busy += SteadyNow() - busy_since_;
  return times;
}

}  // namespace hooke
