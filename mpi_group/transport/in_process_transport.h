#ifndef HOOKE_MPI_GROUP_TRANSPORT_IN_PROCESS_TRANSPORT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_IN_PROCESS_TRANSPORT_H_

// A transport between N ranks that are threads of one process, for tests and for groups without MPI. One thread at a
// time uses a rank's object. The objects share memory that lives as long as the last of them. Nothing is buffered: a
// send is done when its receiver has taken it.
//
// Destroying a rank's object stands for the rank's death: other ranks' calls that wait for this rank, then or later,
// return UNAVAILABLE.

#include <memory>
#include <vector>

#include "mpi_group/transport/transport.h"

namespace hooke {

// Makes n transports, n >= 1; element r is rank r's.
std::vector<std::unique_ptr<Transport>> MakeInProcessTransports(int n);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_IN_PROCESS_TRANSPORT_H_
