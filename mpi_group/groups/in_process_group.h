#ifndef HOOKE_MPI_GROUP_GROUPS_IN_PROCESS_GROUP_H_
#define HOOKE_MPI_GROUP_GROUPS_IN_PROCESS_GROUP_H_

#include <memory>
#include <vector>

#include "mpi_group/group.h"

namespace hooke {

// Makes the groups of n >= 1 ranks that are threads of this process, for tests and for groups without MPI. Element r is
// rank r's group. It uses element r of MakeInProcessTransports(n).
std::vector<std::unique_ptr<Group>> MakeInProcessGroups(int n, const GroupOptions& options = {});

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_IN_PROCESS_GROUP_H_
