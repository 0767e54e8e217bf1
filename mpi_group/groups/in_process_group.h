#ifndef HOOKE_MPI_GROUP_GROUPS_IN_PROCESS_GROUP_H_
#define HOOKE_MPI_GROUP_GROUPS_IN_PROCESS_GROUP_H_

#include <memory>
#include <vector>

#include "mpi_group/group.h"

namespace hooke {

// Groups whose n >= 1 ranks are threads of this process, for tests and for groups without MPI: one over each of
// MakeInProcessTransports(n). Element r is rank r.
std::vector<std::unique_ptr<Group>> MakeInProcessGroups(int n, const GroupOptions& options = {});

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_IN_PROCESS_GROUP_H_
