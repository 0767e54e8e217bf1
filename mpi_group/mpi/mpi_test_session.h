#ifndef HOOKE_MPI_GROUP_MPI_MPI_TEST_SESSION_H_
#define HOOKE_MPI_GROUP_MPI_MPI_TEST_SESSION_H_

#include "mpi_group/mpi/mpi_session.h"

namespace hooke {

// The session of a test under mpirun; made and destroyed by mpi_test_main.cc.
MpiSession& TestSession();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_TEST_SESSION_H_
