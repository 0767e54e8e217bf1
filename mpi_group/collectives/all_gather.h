#ifndef HOOKE_MPI_GROUP_COLLECTIVES_ALL_GATHER_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_ALL_GATHER_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// Ring all-gather: rank r's part, parts[r] of the values, travels around the ring to all others. It takes n-1 steps,
// and each rank sends all parts but one. Parts travel in chunks, with a window of chunks under way in each direction.
//
// There is one part per rank. The parts ascend, do not overlap, and are the same on all ranks; they may have any
// length, or none. Values outside the parts stay unchanged. After an error the values outside this rank's own part are
// unspecified.
absl::Status RingAllGather(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                           const Call& call);

// OK if there are `ranks` ascending parts without overlap within [0, values). Otherwise the error is INVALID_ARGUMENT
// and says what is wrong.
absl::Status CheckParts(absl::Span<const ValueRange> parts, int ranks, uint64_t values);

// OK if a group of `ranks` has the rank `root`. Otherwise the error is INVALID_ARGUMENT.
absl::Status CheckRoot(int root, int ranks);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_ALL_GATHER_H_
