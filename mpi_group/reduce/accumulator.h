#ifndef HOOKE_MPI_GROUP_REDUCE_ACCUMULATOR_H_
#define HOOKE_MPI_GROUP_REDUCE_ACCUMULATOR_H_

// Where an algorithm that reduces values several times, rank after rank, does so.

#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"

namespace hooke {

// Whether sums of this type would be rounded more than once when they are formed of two values at a time.
bool NeedsWideSums(DataType type, ReduceOp op, int ranks);

// The list itself; or, where NeedsWideSums, a float32 copy of it in the scratch's working memory.
class Accumulator {
 public:
  Accumulator(const TensorList& values, ReduceOp op, int ranks, Scratch& scratch);

  // What to reduce in place of the list.
  const TensorList& list() const { return list_; }
  // Writes the copy back, if there is one.
  void Store();

 private:
  const TensorList values_;
  TensorList list_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_REDUCE_ACCUMULATOR_H_
