#ifndef HOOKE_MPI_GROUP_GROUPS_TRANSPORT_GROUP_H_
#define HOOKE_MPI_GROUP_GROUPS_TRANSPORT_GROUP_H_

// A Group over any Transport. For each call it chooses the algorithm (ChooseAlgorithm), sets the deadline, lends the
// working memory, and describes the call in errors.

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpi_group/group.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Makes another transport between the same ranks. All ranks call it together.
using NewTransport = std::function<absl::StatusOr<std::unique_ptr<Transport>>(absl::Time deadline)>;

// `another` makes the transports of clones; if null, the group cannot be cloned.
std::unique_ptr<Group> MakeTransportGroup(std::unique_ptr<Transport> transport, const GroupOptions& options,
                                          NewTransport another = nullptr);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUPS_TRANSPORT_GROUP_H_
