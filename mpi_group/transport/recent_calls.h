#ifndef HOOKE_MPI_GROUP_TRANSPORT_RECENT_CALLS_H_
#define HOOKE_MPI_GROUP_TRANSPORT_RECENT_CALLS_H_

// Numbers a group's calls on this rank and remembers the last ones. The transport learns of calls only before messages
// are sent and after a failure. Telling it of each call would be too slow for collectives that use shared memory alone.
// Not thread-safe.

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
  static constexpr uint64_t kKept = 8;  // A rank's statement after a failure has room for this many.

  // Adds a call and gives it the next number.
  void Add(const CallLabel& call) {
    CallLabel& label = labels_[++count_ % kKept];
    label = call;
    label.number = count_;
  }

  // Tells the transport (Transport::Begin) of the calls added since the last Tell(), in order, at most the last kKept.
  void Tell(Transport& transport, absl::Time now);

  // A call that failed on this rank.
  struct Failed {
    absl::string_view what;  // The call in words, as "all-reduce of 10 values".
    absl::Time begun;        // The time at which the failed call began.
    // The time that a call may take. Settling may take a tenth of it, but no less than 0.2 s and no more than 1 s.
    absl::Duration deadline;
  };
  // Settles a failure with the other ranks (Transport::Settle). Returns the error for the user, whose message begins
  // with `what`; never OK.
  absl::Status Settle(Transport& transport, const absl::Status& failure, const Failed& call);

 private:
  uint64_t count_ = 0;
  uint64_t told_ = 0;
  std::array<CallLabel, kKept> labels_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_RECENT_CALLS_H_
