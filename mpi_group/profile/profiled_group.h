#ifndef HOOKE_MPI_GROUP_PROFILE_PROFILED_GROUP_H_
#define HOOKE_MPI_GROUP_PROFILE_PROFILED_GROUP_H_

// A Group that records the cost of calls and leaves the work to another Group. So no collective has to know of
// profiling.

#include <memory>

#include "mpi_group/group.h"
#include "mpi_group/profile/profile.h"

namespace hooke {

// Wraps `group`: passes every call on to `group` and records the call, even if it fails. `recorder` must outlive the
// result.
std::unique_ptr<Group> MakeProfiledGroup(std::unique_ptr<Group> group, ProfileRecorder& recorder);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_PROFILE_PROFILED_GROUP_H_
