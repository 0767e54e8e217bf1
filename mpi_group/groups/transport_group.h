#ifndef HOOKE_MPI_GROUP_GROUPS_TRANSPORT_GROUP_H_
#define HOOKE_MPI_GROUP_GROUPS_TRANSPORT_GROUP_H_

// A Group over any Transport: takes each call's algorithm from ChooseAlgorithm, gives it a deadline and its working
// memory, and says in an error what was being done. Used by MakeMpiGroup and MakeInProcessGroups.

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Another transport between the same ranks; collective.
using NewTransport = std::function<absl::StatusOr<std::unique_ptr<Transport>>(absl::Time deadline)>;

// `another` makes the transports of clones; null: the group has none.
std::unique_ptr<Group> MakeTransportGroup(std::unique_ptr<Transport> transport, const GroupOptions& options,
                                          NewTransport another = nullptr);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_TRANSPORT_GROUP_H_
