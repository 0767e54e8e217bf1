#ifndef HOOKE_MPI_GROUP_COLLECTIVES_TRANSPORT_COLLECTIVES_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_TRANSPORT_COLLECTIVES_H_

// The test cases of all collectives over a Transport, for collectives_test.cc and groups/mpi_collectives_test.cc.

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
