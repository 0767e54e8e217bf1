#ifndef HOOKE_MPI_GROUP_TRANSPORT_IN_PROCESS_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_IN_PROCESS_TRANSPORT_H_

// N ranks as threads of one process, for tests and for groups without MPI. Each rank's object is used by one thread at
// a time; they find each other through memory that lives as long as the last of them. Nothing is buffered: a send is
// done when its receiver has taken it.
//
// Destroying a rank's object while others wait for it, or before they do, gives them UNAVAILABLE: it is how a rank
// dies.

#include <memory>
#include <vector>

#include "mpi_group/transport/transport.h"

namespace hooke {

// Element r is rank r. n >= 1.
std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int n);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_IN_PROCESS_TRANSPORT_H_
