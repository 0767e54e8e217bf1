#ifndef HOOKE_MPI_GROUP_SCALE_FIT_LINK_H_
#define HOOKE_MPI_GROUP_SCALE_FIT_LINK_H_

// Finds the costs of a network's messages from measured all-reduces, by the model of time_model.h.

#include <cstdint>
#include <vector>

#include "mpi_group/time_model.h"

namespace hooke {

// An all-reduce that was measured, with one rank on each of `nodes` nodes.
struct MeasuredAllReduce {
  int nodes = 2;
  uint64_t bytes = 0;
  double seconds = 0;  // Above 0.
};

// Returns the model's seconds, with the algorithm that the built-in rules choose.
double ModelSeconds(const MeasuredAllReduce& measured, const LinkCost& link);

// Returns the costs with the least sum of squares of ln(model / measured). At least one measurement is given.
LinkCost FitLink(const std::vector<MeasuredAllReduce>& measured);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SCALE_FIT_LINK_H_
