#ifndef HOOKE_WORKER_EXCHANGE_AGREEMENT_H_
#define HOOKE_WORKER_EXCHANGE_AGREEMENT_H_

// How the ranks of a group come to know the same thing when one of them has learned it: so that all take the same
// branch, always. All functions are collective. Errors are the group's, and
// then the group is unusable.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"

namespace hooke {

// All ranks end with rank 0's numbers.
absl::Status BroadcastNumbers(Group& group, absl::Span<uint64_t> numbers);

// All ranks end with the sums, exact as long as a sum stays under 2^63.
absl::Status SumNumbers(Group& group, absl::Span<uint64_t> numbers);

// All ranks end with the outcome of rank `root`: its code, the first 1000 bytes of its message, and the server for want
// of which it failed.
absl::Status BroadcastOutcome(Group& group, absl::Status& outcome, int root = 0);

// All ranks end with the outcome of the lowest rank that failed, or OK if none failed.
absl::Status AgreeOnOutcome(Group& group, absl::Status& outcome);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_AGREEMENT_H_
