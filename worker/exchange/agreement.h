#ifndef HOOKE_WORKER_EXCHANGE_AGREEMENT_H_
#define HOOKE_WORKER_EXCHANGE_AGREEMENT_H_

// Tells all ranks of a group what one of them has learned, so that all ranks always take the same branch. All functions
// are collective. They return the group's errors; after an error the group is unusable.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"

namespace hooke {

// All ranks end with rank 0's numbers.
absl::Status BroadcastNumbers(Group& group, absl::Span<uint64_t> numbers);

// All ranks end with the sums, exact as long as a sum stays under 2^63.
absl::Status SumNumbers(Group& group, absl::Span<uint64_t> numbers);

// All ranks end with the outcome of rank `root`: its code, the first 1000 bytes of its message, and the missing server
// that caused it (want_of_server.h).
absl::Status BroadcastOutcome(Group& group, absl::Status& outcome, int root = 0);

// All ranks end with the outcome of the lowest rank that failed, or OK if no rank failed.
absl::Status AgreeOnOutcome(Group& group, absl::Status& outcome);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_AGREEMENT_H_
