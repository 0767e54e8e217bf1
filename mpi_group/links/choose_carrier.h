#ifndef HOOKE_MPI_GROUP_LINKS_CHOOSE_CARRIER_H_
#define HOOKE_MPI_GROUP_LINKS_CHOOSE_CARRIER_H_

// Decides by measurement whether Hooke's sockets or the MPI library carry messages between the nodes of a group. MPI is
// the faster one where it uses RDMA, and that depends on the library, its settings and the cards.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/group.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Returns, for people, why MPI carries the messages; "" if sockets do. MPI does if it takes less time for a message of
// 1 MiB to each peer, one after another. The figures are those of the same peers. Pure.
std::string WhyMpi(absl::Span<const LinkFigures> by_mpi, absl::Span<const LinkFigures> by_sockets);

// Collective over one rank of each node, `mpi` and `sockets` being between these ranks. Measures with each of them
// (measure_links.h), which takes up to about 0.2 s. Returns WhyMpi on rank 0, and "" on the others. `memory` is working
// memory as for MeasureLinks. Errors are those of the transports.
absl::StatusOr<std::string> MeasureCarriers(Transport& mpi, Transport& sockets, std::vector<char>& memory,
                                            absl::Time deadline);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_LINKS_CHOOSE_CARRIER_H_
