#ifndef HOOKE_MPI_GROUP_COLLECTIVES_TEXTS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_TEXTS_H_

// While a group starts, its ranks tell one another short texts by these functions. A text travels up or down a binomial
// tree (tree.h) whose root is rank 0. In one call a rank sends at most 2 ceil(log2 n) messages and receives at most as
// many. All ranks together send at most 2(n-1) messages, in GatherNodes 4(n-1). All functions are collective; their
// errors are those of the transport unless they say more.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/transport/topology.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Longest text that ranks share, so that a damaged length cannot take all memory.
inline constexpr uint64_t kTextBytesMax = uint64_t{64} << 20;

// Gives all ranks rank 0's bytes. All pass equally many.
absl::Status Spread(Transport& transport, absl::Span<char> bytes, absl::Time deadline);

// Returns rank 0's text on all ranks. INVALID_ARGUMENT on all ranks if it is longer than kTextBytesMax; the transport
// can still be used then.
absl::StatusOr<std::string> ShareText(Transport& transport, const std::string& text, absl::Time deadline);

// Returns the texts of all ranks on rank 0, joined in the order of the ranks. Other ranks return the joined texts of
// some ranks. INTERNAL if the joined texts would be longer than kTextBytesMax.
absl::StatusOr<std::string> JoinTexts(Transport& transport, std::string text, absl::Time deadline);

// Returns the nodes of all ranks; `identity` is that of this rank's node. 8 bytes per rank go up the tree. 16 bytes per
// NodePattern come down.
absl::StatusOr<Nodes> GatherNodes(Transport& transport, const std::string& identity, absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_TEXTS_H_
