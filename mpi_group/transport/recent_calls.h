#ifndef HOOKE_MPI_GROUP_TRANSPORT_RECENT_CALLS_H_
#define HOOKE_MPI_GROUP_TRANSPORT_RECENT_CALLS_H_

// The last calls of a group on this rank, numbered. The transport hears of them late: before messages, and when
// something failed. What goes through shared memory alone is too quick for it. Not thread-safe; used by
// groups/transport_group.cc and cuda/staged_group.cc.

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpi_group/transport/call_label.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

class RecentCalls {
 public:
  static constexpr uint64_t kKept = 8;  // As many as a rank can tell after a failure.

  // The next call, which gets the next number.
  void Add(const CallLabel& call) {
    CallLabel& label = labels_[++count_ % kKept];
    label = call;
    label.number = count_;
  }

  // Those of the last kKept that it has not heard of, in order.
  void Tell(Transport& transport, absl::Time now);

  // A call that failed on this rank.
  struct Failed {
    absl::string_view what;   // "all-reduce of 10 values"
    absl::Time begun;         // For the calls that the transport has not heard of.
    absl::Duration deadline;  // That a call may take. A tenth of it, but 0.2 to 1 s, is for hearing the others.
  };
  // Tells the others of the failure and hears them. What the user is to know, in words that begin with `what`; never
  // OK.
  absl::Status Settle(Transport& transport, const absl::Status& failure, const Failed& call);

 private:
  uint64_t count_ = 0;
  uint64_t told_ = 0;
  std::array<CallLabel, kKept> labels_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_RECENT_CALLS_H_
