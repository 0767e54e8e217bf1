#ifndef HOOKE_MPI_GROUP_SCALE_SIMULATED_ALL_REDUCE_H_
#define HOOKE_MPI_GROUP_SCALE_SIMULATED_ALL_REDUCE_H_

// Runs all-reduces among many simulated ranks, to check the model of time_model.h. The code of the collectives is that
// of jobs. The ranks are threads of this process, and their messages cost virtual time (virtual_network.h).
// docs/scale.md has the results.
//
// Every rank checks every value of its result. Errors: INTERNAL if a value is wrong; else the error of a collective.

#include <cstdint>

#include "absl/status/statusor.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/operation.h"
#include "mpi_group/time_model.h"

namespace hooke {

// Returns the virtual seconds of one all-reduce of float32 by `algorithm`, each rank on a link of its own. All ranks
// start at the same time; the time is the slowest rank's. The values take call.bytes / bytes_per_byte of memory on each
// rank, and each byte of a message counts as `bytes_per_byte`.
absl::StatusOr<double> SimulateAllReduce(Algorithm algorithm, const ModelCall& call, const LinkCost& link,
                                         uint64_t bytes_per_byte = 1);

// An all-reduce of a whole group, on nodes with equally many ranks. The ranks of a node share a link. The values are
// float32 in the group's arena. The built-in rules choose the algorithms.
struct TwoLevelCase {
  int nodes = 2;
  int ranks_of_each = 2;
  uint64_t bytes = 0;
};
// Returns the algorithm between the nodes.
Choice ChoiceBetweenNodes(const TwoLevelCase& one);
// Returns the seconds by the model. Work inside a node takes no time, as in the simulation.
double TwoLevelSeconds(const TwoLevelCase& one, const LinkCost& link);
// Returns the virtual seconds that the all-reduce takes. The ranks of a node share memory, as in a job. Work inside a
// node takes no virtual time.
absl::StatusOr<double> SimulateTwoLevel(const TwoLevelCase& one, const LinkCost& link);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SCALE_SIMULATED_ALL_REDUCE_H_
