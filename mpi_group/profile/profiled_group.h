#ifndef HOOKE_MPI_GROUP_PROFILE_PROFILED_GROUP_H_
#define HOOKE_MPI_GROUP_PROFILE_PROFILED_GROUP_H_

// A Group that records what its calls cost and does nothing else: so no collective knows of the profile.

#include <memory>

#include "mpi_group/group.h"
#include "mpi_group/profile/profile.h"

namespace hooke {

// Passes every call on to `group`; calls that fail are recorded, too. `recorder` outlives the result.
std::unique_ptr<Group> MakeProfiledGroup(std::unique_ptr<Group> group, ProfileRecorder& recorder);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_PROFILE_PROFILED_GROUP_H_
