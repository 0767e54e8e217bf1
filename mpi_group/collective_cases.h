#ifndef HOOKE_MPI_GROUP_COLLECTIVE_CASES_H_
#define HOOKE_MPI_GROUP_COLLECTIVE_CASES_H_

// The cases that every collective is tested with, in process and under mpirun. A check is called by all ranks together,
// with its own rank's transport or group; it reports through GoogleTest.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpi_group/call.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport.h"

namespace hooke {

enum class SizeClass { kZero, kOne, kRanksMinusOne, kRanks, kRanksPlusOne, kOdd, kLarge };

struct CollectiveCase {
  SizeClass size = SizeClass::kOne;
  ReduceOp op = ReduceOp::kSum;
  bool pieces = false;  // A list of five pieces, some of them empty; else of one.
};

std::vector<CollectiveCase> AllCollectiveCases();
std::string NameOf(const CollectiveCase& collective_case);  // As a GoogleTest parameter's name.
uint64_t Values(SizeClass size, int ranks);

using AllReduceFunction = std::function<absl::Status(Transport&, const TensorList&, ReduceOp, const Call&)>;

// The result is the reduction in rank order of what all ranks put in, exactly for whole numbers and for `in_rank_order`
// functions, closely for others; it is bitwise the same on all ranks; memory between the pieces is as before.
void CheckAllReduce(Transport& transport, const AllReduceFunction& all_reduce, bool in_rank_order,
                    const CollectiveCase& collective_case);
// From every root.
void CheckBroadcast(Transport& transport, const CollectiveCase& collective_case);
// With even parts, and with uneven ones that leave values out.
void CheckAllGather(Transport& transport, const CollectiveCase& collective_case);
// All operations of a group, on memory of the test's and in an arena of the group's.
void CheckGroup(Group& group, const CollectiveCase& collective_case);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_COLLECTIVE_CASES_H_
