#ifndef HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_H_
#define HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_H_

// Overlaps collectives with backward: gradients come in buckets, and each bucket's collective may start as soon as
// backward has made the bucket ready. Ranks make buckets ready in different orders and from different threads. Yet all
// ranks must call the collectives of a group in the same order. An issue order ensures that. The three designs are
// those of arXiv 1802.06949; docs/issue-order.md says when to use which.
//
//   funneled    One thread calls the collectives, in the order of the buckets. The caller of FinishWith calls
//               the last ones.
//   concurrent  There are several lanes, each with its own group and thread. Bucket b belongs to lane b mod lanes, and
//               each lane calls the collectives of its buckets in order. Lanes run at the same time.
//   chained     There is no thread. The buckets form a chain: whoever makes its next bucket ready calls that bucket's
//               collective, and those of the buckets behind it that are ready already.
//
// In each design the order of calls on a group follows from bucket numbers alone, never from readiness. So ranks cannot
// call different collectives. A circle of ranks that wait for one another is impossible, too. All ranks are in, or will
// come to, the same collective: that of the lane's lowest bucket that is not done everywhere.
//
// A pass is one use of all buckets: each is made ready once, in any order and by any thread; then comes Finish. After
// an error the order and its groups are unusable, and the order calls no more collectives.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

enum class IssuePolicy { kFunneled, kConcurrent, kChained };

// The name of a policy, for instance "funneled".
absl::string_view NameOf(IssuePolicy policy);

struct IssueTimes {
  absl::Duration busy;  // Time in which at least one collective was running.
  // Time that callers spent in Ready, Wait and Finish; busy - waited is the time hidden behind backward.
  absl::Duration waited;
};

class IssueOrder {
 public:
  // Waits until no thread uses the groups any longer, at most until the groups' deadline.
  virtual ~IssueOrder() = default;

  // Makes a bucket ready: its values are this rank's contribution, and nobody touches them until Wait or Finish
  // returns. Thread-safe. Funneled and concurrent orders return at once; a chained one may call collectives. If the
  // bucket does not exist or is ready already, Finish returns an error.
  virtual void Ready(size_t bucket) = 0;

  // Waits until the bucket's collective is done, with its result in the bucket's values. It is for threads that need
  // some buckets before Finish. Returns the first error if the bucket was not made ready or any collective has failed.
  // Thread-safe.
  virtual absl::Status Wait(size_t bucket) = 0;

  // Ends a pass: waits for all collectives, within the options' deadline. Returns OK or this rank's first error. If a
  // bucket was not made ready, Finish returns INVALID_ARGUMENT at once, which names the bucket. No Ready call may run
  // meanwhile.
  absl::Status Finish() { return FinishWith({}); }

  // Makes the buckets `last` ready, then does what Finish does. In a funneled order the caller has nothing else to do,
  // so the caller itself calls those collectives that no thread has begun. That saves waking two threads. Each of these
  // collectives has its group's deadline.
  virtual absl::Status FinishWith(absl::Span<const size_t> last) = 0;

  // Totals since the order was made. Thread-safe.
  virtual IssueTimes times() const = 0;
};

// The collective to call for a bucket, on its lane's group. The order's threads and its callers call it. With several
// lanes, several threads may call it at once, on different groups.
using BucketCollective = std::function<absl::Status(Group& group, const TensorList& bucket)>;

struct IssueOrderOptions {
  IssuePolicy policy = IssuePolicy::kFunneled;
  // At least one group; all must outlive the order. Nobody else uses them between the first Ready of a pass and the
  // end of its Finish. Funneled and chained orders use only the first one.
  std::vector<Group*> lanes;
  std::vector<TensorList> buckets;  // Numbered from 0, in the order in which backward usually makes them ready.
  BucketCollective collective;
  absl::Duration deadline = absl::Seconds(30);  // Deadline of each Wait and Finish.
};

// Collective over the first lane: checks that all ranks have the same policy, number of lanes, and buckets (number,
// sizes, types); bucket_agreement.h describes the errors. INVALID_ARGUMENT also if `lanes` is empty.
absl::StatusOr<std::unique_ptr<IssueOrder>> MakeIssueOrder(IssueOrderOptions options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_H_
