#ifndef HOOKE_MPI_GROUP_COLLECTIVES_COLLECTIVE_CASES_H_
#define HOOKE_MPI_GROUP_COLLECTIVES_COLLECTIVE_CASES_H_

// The test cases of all collectives, in process and under mpirun. All ranks call a check together, each with its own
// transport or group. A check goes through all types of values and all reductions, and reports through GoogleTest.
// Expected results are computed in rank order and rounded once, in double, in int64, or in float32 for 16-bit values.

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
  bool pieces = false;  // True: lists of five pieces, some of them empty. False: lists of one piece.
};

std::vector<CollectiveCase> AllCollectiveCases();
std::string NameOf(const CollectiveCase& collective_case);  // A valid name of a GoogleTest parameter.
// The number of values in a list of this size class.
uint64_t Values(SizeClass size, int ranks);

using AllReduceFunction = std::function<absl::Status(Transport&, const TensorList&, ReduceOp, const Call&)>;
using ReduceScatterFunction =
    std::function<absl::Status(Transport&, const TensorList&, absl::Span<const ValueRange>, ReduceOp, const Call&)>;
using AllGatherFunction =
    std::function<absl::Status(Transport&, const TensorList&, absl::Span<const ValueRange>, const Call&)>;
using ReduceFunction = std::function<absl::Status(Transport&, const TensorList&, ReduceOp, int root, const Call&)>;
using BroadcastFunction = std::function<absl::Status(Transport&, const TensorList&, int root, const Call&)>;

// Checks that the result is the reduction of all ranks' values: exact for whole numbers, close for others, and bitwise
// the same on all ranks. All checks also expect the memory between the pieces of a list to stay unchanged.
void CheckAllReduce(Transport& transport, const AllReduceFunction& all_reduce, const CollectiveCase& collective_case);
// CheckReduceScatter() and CheckAllGather() try even parts, and uneven parts that leave some values out.
void CheckReduceScatter(Transport& transport, const ReduceScatterFunction& reduce_scatter,
                        const CollectiveCase& collective_case);
void CheckAllGather(Transport& transport, const AllGatherFunction& all_gather, const CollectiveCase& collective_case);
// CheckReduce() and CheckBroadcast() try the first, a middle and the last rank as the root.
void CheckReduce(Transport& transport, const ReduceFunction& reduce, const CollectiveCase& collective_case);
void CheckBroadcast(Transport& transport, const BroadcastFunction& broadcast, const CollectiveCase& collective_case);
// Checks all operations of a group, on ordinary memory and in the group's arena.
void CheckGroup(Group& group, const CollectiveCase& collective_case);
// The part of CheckGroup() that is about all-reduces.
void CheckGroupAllReduce(Group& group, const CollectiveCase& collective_case);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVES_COLLECTIVE_CASES_H_
