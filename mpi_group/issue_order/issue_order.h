#ifndef HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_H_
#define HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_H_

// Collectives embedded in backward: gradients come in buckets, and each bucket's collective may start as soon as
// backward has made it ready, while backward goes on. Ranks make buckets ready in different orders and from different
// threads, yet collectives of one group must be called in one order on all ranks. An issue order sees to that; the
// three designs are those of arXiv 1802.06949. Used by worker/rank; docs/issue-order.md says when to use which.
//
//   funneled    one thread calls the collectives, in the order of the buckets; the caller of FinishWith the last ones.
//   concurrent  several lanes, each a group of its own with a thread of its own: bucket b belongs to lane b mod lanes,
//               and each lane calls its own in order. Lanes run at the same time.
//   chained     no thread: bucket b + 1 depends on bucket b. Whoever makes the next link of the chain ready calls its
//               collective, and those of the links after it that are ready already.
//
// In each of them the order of calls on a group follows from bucket numbers alone, never from readiness, so ranks
// cannot call different collectives, nor wait for one another in a circle: the lowest bucket of a lane that is not done
// everywhere is the one its ranks are in or will be in.
//
// A round is one use of all buckets: each is made ready once, in any order, by any thread, then Finish. After an error
// the order and its groups are unusable: nothing more is called.

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

// "funneled"
absl::string_view NameOf(IssuePolicy policy);

struct IssueTimes {
  absl::Duration busy;    // While at least one collective was running.
  absl::Duration waited;  // What callers of Ready, Wait and Finish spent in them; busy - waited was hidden.
};

class IssueOrder {
 public:
  // Returns when no thread uses the groups any longer: at the latest after the groups' deadline.
  virtual ~IssueOrder() = default;

  // The bucket's values are what this rank contributes; they belong to the collective until Wait or Finish returns.
  // Thread-safe. Funneled and concurrent: returns at once. Chained: may call collectives. A bucket that does not exist
  // or is ready already is an error, which Finish returns.
  virtual void Ready(size_t bucket) = 0;

  // Returns when the bucket's collective is done, with its result in the bucket's values: another than Finish's
  // caller may want some buckets earlier. The bucket has been made ready; if not, or if any collective has failed:
  // the first error. Thread-safe.
  virtual absl::Status Wait(size_t bucket) = 0;

  // The end of a round: waits for all collectives, within the options' deadline. OK, or the first error of this rank;
  // INVALID_ARGUMENT at once, naming it, if a bucket was not made ready. No Ready call is under way meanwhile.
  absl::Status Finish() { return FinishWith({}); }

  // The same, after making `last` ready. Funneled, the caller, which has nothing left to do beside them, calls the
  // collectives that no thread has begun itself, and spares two threads' waking. They have their group's deadline,
  // each.
  virtual absl::Status FinishWith(absl::Span<const size_t> last) = 0;

  // Totals since the order was made. Thread-safe.
  virtual IssueTimes times() const = 0;
};

// What is to be done with a bucket, by a lane's group. Called from the order's threads and its callers'; from several
// at once on different groups where there are several lanes.
using BucketCollective = std::function<absl::Status(Group& group, const TensorList& bucket)>;

struct IssueOrderOptions {
  IssuePolicy policy = IssuePolicy::kFunneled;
  // At least one; all outlive the order, and nobody else uses them between the first Ready of a round and the end of
  // its Finish. Funneled and chained use the first one alone.
  std::vector<Group*> lanes;
  std::vector<TensorList> buckets;  // In the order in which backward usually makes them ready; numbered from 0.
  BucketCollective collective;
  absl::Duration deadline = absl::Seconds(30);  // Of Wait and Finish, each.
};

// Collective over the first lane: makes sure that all ranks have the same policy, lanes and buckets (number, sizes,
// types; bucket_agreement.h says how errors read). INVALID_ARGUMENT also without a lane.
absl::StatusOr<std::unique_ptr<IssueOrder>> MakeIssueOrder(IssueOrderOptions options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_ISSUE_ORDER_ISSUE_ORDER_H_
