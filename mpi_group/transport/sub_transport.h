#ifndef HOOKE_MPI_GROUP_TRANSPORT_SUB_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_SUB_TRANSPORT_H_

// A transport over some ranks of another transport. Collectives that work in stages use it, for instance first the
// ranks of each node, then one rank of each node.

#include <memory>
#include <vector>

#include "mpi_group/transport/transport.h"

namespace hooke {

// Rank i of the result is rank ranks[i] of `transport`. These are distinct, and one of them is transport.rank().
//
// `transport` must outlive the result. One thread uses `transport` and the result. One call may use `transport` and
// several sub-transports, since messages between two ranks arrive in the order in which they were started, through any
// of them. Errors name the ranks of `transport`. Begin, CheckNotices and Settle concern the whole call and go to
// `transport`, hence to all its ranks.
std::unique_ptr<Transport> MakeSubTransport(Transport& transport, std::vector<int> ranks);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_SUB_TRANSPORT_H_
