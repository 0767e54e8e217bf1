#ifndef HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_PASS_H_
#define HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_PASS_H_

// The state of a pass over the buckets, common to all issue orders: which buckets are ready, which is next in each
// lane, which are done, and the first error. It decides which collective a lane may call next, but calls none itself.
// Thread-safe.

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/issue_order/issue_order.h"

namespace hooke {

class IssueOrderPass {
 public:
  struct Shape {
    size_t buckets = 0;
    size_t lanes = 1;
    absl::Duration deadline;
  };
  explicit IssueOrderPass(const Shape& shape);

  void SetReady(size_t bucket);

  // Waits until the lane's next bucket is ready and returns that bucket. The caller then calls the bucket's collective,
  // and Done. Returns nothing once an error or Close has ended the order. One thread per lane may call AwaitNext.
  std::optional<size_t> AwaitNext(size_t lane);
  // Does what AwaitNext does, but never waits. It also returns nothing if the next bucket is not ready, or if another
  // thread works in the lane.
  std::optional<size_t> TryNext(size_t lane);
  // Makes the pass's last buckets ready, for an order of one lane, and takes the next bucket as TryNext does, before
  // another thread can. Returns nothing if `buckets` is empty, or if any other bucket is not ready, which Finish then
  // reports.
  std::optional<size_t> SetLast(absl::Span<const size_t> buckets);
  void Done(size_t bucket, const absl::Status& status);

  absl::Status Wait(size_t bucket);
  absl::Status Finish();
  // Makes AwaitNext return nothing from now on.
  void Close();

  void AddWaited(absl::Duration waited);
  IssueTimes times() const;

 private:
  enum class State { kIdle, kReady, kDone };
  struct Lane {
    size_t next = 0;
    bool working = false;
  };

  void MakeReady(size_t bucket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Runnable(const Lane& lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !failure_.ok(); }
  size_t Take(Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckAllReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NotDone(size_t bucket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until the condition is true, at most for `deadline_`. Returns whether it is.
  bool AwaitOrDeadline(const absl::Condition& settled) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Restart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t lanes_count_;
  const absl::Duration deadline_;

  mutable absl::Mutex mutex_;
  std::vector<State> states_ ABSL_GUARDED_BY(mutex_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // The first error.
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  size_t working_ ABSL_GUARDED_BY(mutex_) = 0;  // Number of working lanes.
  absl::Time busy_since_ ABSL_GUARDED_BY(mutex_);
  IssueTimes times_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_PASS_H_
