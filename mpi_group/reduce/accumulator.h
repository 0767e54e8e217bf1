#ifndef HOOKE_MPI_GROUP_REDUCE_ACCUMULATOR_H_
#define HOOKE_MPI_GROUP_REDUCE_ACCUMULATOR_H_

// The memory in which collectives accumulate values that several ranks reduce one after the other.

#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// True if summing these values two at a time would round each sum more than once: 16-bit sums of more than two ranks.
bool NeedsWideSums(DataType type, ReduceOp op, int ranks);

// Holds the list in which a collective accumulates: `values` itself, or a float32 copy of it in the scratch memory if
// NeedsWideSums.
class Accumulator {
 public:
  Accumulator(const TensorList& values, ReduceOp op, int ranks, Scratch& scratch);

  // The list to reduce, in place of the original.
  const TensorList& list() const { return list_; }
  // Rounds the copy and writes it back to the original, if there is a copy.
  void Store();

 private:
  const TensorList values_;
  TensorList list_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_ACCUMULATOR_H_
