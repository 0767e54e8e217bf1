#ifndef HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_

// A vote of all ranks on whether to go on, for the time before a group is set up and has quicker means. Votes go up a
// binomial tree to rank 0, the result comes down it: 2 ceil(log2 n) messages in a row. Collective. Errors are those of
// the transport.

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Returns true on all ranks if `flag` is true on all of them, else false on all.
absl::StatusOr<bool> OnAllRanks(Transport& transport, bool flag, absl::Time deadline);

// Returns the objection of the lowest rank that has one, on all ranks; empty if all are empty. An objection is a line
// of text. While there is none, it costs no more than OnAllRanks.
absl::StatusOr<std::string> FirstObjection(Transport& transport, const std::string& objection, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_ON_ALL_RANKS_H_
