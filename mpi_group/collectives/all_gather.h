#ifndef HOOKE_MPI_GROUP_COLLECTIVES_ALL_GATHER_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_ALL_GATHER_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

// parts[r] of the values goes from rank r to all, around a ring: n-1 steps; each rank sends all parts but one, in
// chunks, a window of them under way each way. The parts are ascending, do not overlap, and are the same on all ranks;
// there are transport.size() of them. They may be of any length, or empty; values in no part stay. After an error the
// values outside the own part are unspecified.
absl::Status RingAllGather(Transport& transport, const TensorList& values, absl::Span<const ValueRange> parts,
                           const Call& call);

// INVALID_ARGUMENT, saying which part, unless there are `ranks` ascending parts without overlap within [0, values).
absl::Status CheckParts(absl::Span<const ValueRange> parts, int ranks, uint64_t values);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_ALL_GATHER_H_
