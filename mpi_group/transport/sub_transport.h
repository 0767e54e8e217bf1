#ifndef HOOKE_MPI_GROUP_TRANSPORT_SUB_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_SUB_TRANSPORT_H_

// Some ranks of a transport as a transport of their own, for collectives that work in stages (the ranks of a node, then
// one rank of each node).

#include <memory>
#include <vector>

#include "mpi_group/transport/transport.h"

namespace hooke {

// Rank i of it is ranks[i] of `transport`; they are distinct, and transport.rank() is one of them. `transport` outlives
// it, and is used by the same thread; a call may use both, and several of them, for messages between two ranks arrive
// in the order in which they were started, through whichever. Errors name the ranks of `transport`. What concerns the
// whole call (Begin, CheckNotices, Settle) goes to `transport`, and so to all its ranks.
std::unique_ptr<Transport> MakeSubTransport(Transport& transport, std::vector<int> ranks);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_SUB_TRANSPORT_H_
