#ifndef HOOKE_MPI_GROUP_COLLECTIVES_RING_PASS_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_RING_PASS_H_

// What RingReduceScatter, RingAllGather and RingAllReduce have in common; with stages, what node/two_level.cc and
// node/two_level_wide.cc are made of.

#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// In step s of n ranks, rank r sends part r-s-1 to the next rank and receives part r-s-2 from the previous one (modulo
// n). In steps 0 to n-2 what comes is reduced with what is there, so that after step n-2 the own part is reduced; in
// steps n-1 to 2n-3 it replaces what is there.
struct RingSteps {
  int first = 0;
  int end = 0;
};

// A chunk of a rank's values: portion `index` of part `part`, cut into portions of `portion` values.
struct RingChunk {
  const TensorList& values;
  int part = 0;
  uint64_t index = 0;
  uint64_t portion = 0;
};

// What happens to each chunk besides, while others travel; null for nothing. `before` goes with steps from 0 on only;
// `after` is called in step n-2 and those that follow. Which calls come, and in which order, is the same for all rings
// of as many ranks and portions, steps and messages at once, at the same rank. An error ends the pass.
struct RingStages {
  // Before this rank sends or reduces its values of the chunk.
  std::function<absl::Status(const RingChunk&)> before;
  // When the chunk has its result.
  std::function<absl::Status(const RingChunk&)> after;
  // The stages wait for ranks that are in another such ring, as far as this one.
  bool meet = false;
  int mean_of = 0;  // For kMean, what sums are divided by; 0: n.
  // Parts are cut as if there were this many values: at least as many as there are, the same on all ranks; 0: as many
  // as there are. Rings of nearly as many values then have as many portions, some of them empty.
  uint64_t as_of_values = 0;
};

absl::Status PassAroundRing(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                            RingSteps steps, ReduceOp op, const Call& call, const RingStages& stages = {});

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_RING_PASS_H_
