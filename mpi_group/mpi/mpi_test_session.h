#ifndef HOOKE_MPI_GROUP_MPI_MPI_TEST_SESSION_H_
#define HOOKE_MPI_GROUP_MPI_MPI_TEST_SESSION_H_

#include "mpi_group/mpi/mpi_session.h"

namespace hooke {

// The MPI session of a test that runs under mpirun. mpi_test_main.cc makes and destroys it.
MpiSession& TestSession();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_TEST_SESSION_H_
