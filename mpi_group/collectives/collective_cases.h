#ifndef HOOKE_MPI_GROUP_COLLECTIVES_COLLECTIVE_CASES_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_COLLECTIVE_CASES_H_

// The cases that every collective is tested with, in process and under mpirun. A check is called by all ranks together,
// with its own rank's transport or group; it goes through all types of values and all reductions, and reports through
// GoogleTest. What must come out is made in the obvious way: in double, int64, or float32 for values of 16 bits, in
// rank order, rounded once.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/transport.h"

namespace hooke {

enum class SizeClass { kZero, kOne, kRanksMinusOne, kRanks, kRanksPlusOne, kOdd, kLarge };

struct CollectiveCase {
  SizeClass size = SizeClass::kOne;
  bool pieces = false;  // Lists of five pieces, some of them empty; else of one.
};

std::vector<CollectiveCase> AllCollectiveCases();
std::string NameOf(const CollectiveCase& collective_case);  // As a GoogleTest parameter's name.
uint64_t Values(SizeClass size, int ranks);

using AllReduceFunction = std::function<absl::Status(Transport&, const TensorList&, ReduceOp, const Call&)>;
using ReduceScatterFunction =
    std::function<absl::Status(Transport&, const TensorList&, absl::Span<const ValueRange>, ReduceOp, const Call&)>;
using AllGatherFunction =
    std::function<absl::Status(Transport&, const TensorList&, absl::Span<const ValueRange>, const Call&)>;
using ReduceFunction = std::function<absl::Status(Transport&, const TensorList&, ReduceOp, int root, const Call&)>;
using BroadcastFunction = std::function<absl::Status(Transport&, const TensorList&, int root, const Call&)>;

// The result is the reduction of what all ranks put in, exactly for whole numbers, closely for others, and bitwise the
// same on all ranks. In all checks memory between the pieces stays as it was.
void CheckAllReduce(Transport& transport, const AllReduceFunction& all_reduce, const CollectiveCase& collective_case);
// With even parts, and with uneven ones that leave values out.
void CheckReduceScatter(Transport& transport, const ReduceScatterFunction& reduce_scatter,
                        const CollectiveCase& collective_case);
void CheckAllGather(Transport& transport, const AllGatherFunction& all_gather, const CollectiveCase& collective_case);
// To and from the first, a middle and the last rank.
void CheckReduce(Transport& transport, const ReduceFunction& reduce, const CollectiveCase& collective_case);
void CheckBroadcast(Transport& transport, const BroadcastFunction& broadcast, const CollectiveCase& collective_case);
// All operations of a group, on memory of the test's and in an arena of the group's.
void CheckGroup(Group& group, const CollectiveCase& collective_case);

// Of k lists per rank.
void CheckReplicas(Group& group, const CollectiveCase& collective_case);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_COLLECTIVE_CASES_H_
