#ifndef HOOKE_MPI_GROUP_GROUPS_MPI_GROUP_H_
#define HOOKE_MPI_GROUP_GROUPS_MPI_GROUP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "mpi_group/group.h"
#include "mpi_group/mpi/mpi_session.h"

namespace hooke {

// Makes the group of all ranks of MPI_COMM_WORLD. Collective. The session must outlive the group. After an error of a
// group's call the session is failed: the rank reports the error and ends by MpiSession::ExitWithoutFinalize.
absl::StatusOr<std::unique_ptr<Group>> MakeMpiGroup(MpiSession& session, const GroupOptions& options);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_MPI_GROUP_H_
