#ifndef HOOKE_MPI_GROUP_COLLECTIVES_TRANSPORT_COLLECTIVES_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_TRANSPORT_COLLECTIVES_H_

// A list of the collectives that work over a Transport, each with its name and its check. For tests.

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "mpi_group/collectives/collective_cases.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

struct NamedCheck {
  std::string name;  // "RingAllReduce"
  std::function<void(Transport&, const CollectiveCase&)> check;
};

inline void PrintTo(const NamedCheck& check, std::ostream* out) { *out << check.name; }

std::vector<NamedCheck> AllTransportCollectives();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_TRANSPORT_COLLECTIVES_H_
