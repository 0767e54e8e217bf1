#ifndef HOOKE_MPI_GROUP_COLLECTIVES_RING_PASS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_RING_PASS_H_

// The common core of RingReduceScatter, RingAllGather and RingAllReduce: parts of the values travel around a ring,
// chunk by chunk. Two-level collectives run it between nodes and add stages, which do work inside the node for each
// chunk.

#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// The steps [first, end) of a ring of n ranks. In step s rank r sends part r-s-1 to the next rank and receives part
// r-s-2 from the previous one (modulo n). In steps 0 to n-2 a rank reduces the incoming values with its own; after step
// n-2 its own part is fully reduced. In steps n-1 to 2n-3 incoming values replace its own.
struct RingSteps {
  int first = 0;
  int end = 0;
};

// A chunk of a rank's values: part `part` is cut into chunks of `portion` values, and this is number `index` of them.
struct RingChunk {
  const TensorList& values;
  int part = 0;
  uint64_t index = 0;
  uint64_t portion = 0;
};

// Functions called for each chunk while others travel; null for none. `before` needs steps that start at 0; `after` is
// called in step n-2 and later ones. The order of these calls depends only on the rank, the number of ranks, the
// chunks, the steps and the window. An error ends the pass.
struct RingStages {
  // Called before this rank sends its values of the chunk or reduces them.
  std::function<absl::Status(const RingChunk&)> before;
  // Called when the chunk holds its final result.
  std::function<absl::Status(const RingChunk&)> after;
  // True if `before` or `after` may wait for other ranks of this node, which run rings of their own. The pass then
  // first waits until its earlier messages have left, so that it cannot deadlock.
  bool meet = false;
  int mean_of = 0;  // The number by which kMean divides the sum. 0: the number of ranks.
  // The length of chunks is computed as if this many values were cut into even parts. The number is at least that of
  // `values`, and the same on all ranks. So rings with slightly different numbers of values have equally many chunks,
  // some of them empty. 0: the number of `values`.
  uint64_t as_of_values = 0;
};

// Runs the steps on this rank. After OK every part that this rank received in step n-2 or later has its final values.
// After an error the values are unspecified.
absl::Status PassAroundRing(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                            RingSteps steps, ReduceOp op, const Call& call, const RingStages& stages = {});

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_RING_PASS_H_
