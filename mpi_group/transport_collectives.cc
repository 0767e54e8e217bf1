#include "mpi_group/transport_collectives.h"

#include "absl/strings/str_cat.h"
#include "mpi_group/all_gather.h"
#include "mpi_group/broadcast.h"
#include "mpi_group/halving_doubling.h"
#include "mpi_group/pairwise.h"
#include "mpi_group/recursive_doubling.h"
#include "mpi_group/reference.h"
#include "mpi_group/ring.h"
#include "mpi_group/rooted_reduce.h"

namespace hooke {
namespace {

NamedCheck AllReduceCheck(std::string name, const AllReduceFunction& all_reduce) {
  return {std::move(name), [=](Transport& transport, const CollectiveCase& collective_case) {
            CheckAllReduce(transport, all_reduce, collective_case);
          }};
}

NamedCheck ReduceScatterCheck(std::string name, const ReduceScatterFunction& reduce_scatter) {
  return {std::move(name), [=](Transport& transport, const CollectiveCase& collective_case) {
            CheckReduceScatter(transport, reduce_scatter, collective_case);
          }};
}

NamedCheck AllGatherCheck(std::string name, const AllGatherFunction& all_gather) {
  return {std::move(name), [=](Transport& transport, const CollectiveCase& collective_case) {
            CheckAllGather(transport, all_gather, collective_case);
          }};
}

NamedCheck ReduceCheck(std::string name, const ReduceFunction& reduce) {
  return {std::move(name), [=](Transport& transport, const CollectiveCase& collective_case) {
            CheckReduce(transport, reduce, collective_case);
          }};
}

NamedCheck BroadcastCheck(std::string name, const BroadcastFunction& broadcast) {
  return {std::move(name), [=](Transport& transport, const CollectiveCase& collective_case) {
            CheckBroadcast(transport, broadcast, collective_case);
          }};
}

}  // namespace

std::vector<NamedCheck> AllTransportCollectives() {
  std::vector<NamedCheck> checks = {
      AllReduceCheck("ReferenceAllReduce", ReferenceAllReduce),
      AllReduceCheck("RingAllReduce", RingAllReduce),
      AllReduceCheck("PairwiseAllReduce", PairwiseAllReduce),
      AllReduceCheck("RecursiveDoublingAllReduce", RecursiveDoublingAllReduce),
      AllReduceCheck("HalvingDoublingAllReduce", HalvingDoublingAllReduce),
      ReduceScatterCheck("RingReduceScatter", RingReduceScatter),
      ReduceScatterCheck("PairwiseReduceScatter", PairwiseReduceScatter),
      AllGatherCheck("RingAllGather", RingAllGather),
      AllGatherCheck("PairwiseAllGather", PairwiseAllGather),
      ReduceCheck("BinomialReduce", BinomialReduce),
      ReduceCheck("ChainReduce", ChainReduce),
      BroadcastCheck("BinomialBroadcast", BinomialBroadcast),
      BroadcastCheck("ChainBroadcast", ChainBroadcast),
  };
  for (TreeShape::Leaders leaders : {TreeShape::Leaders::kBinomial, TreeShape::Leaders::kChain}) {
    const TreeShape shape = {/*sub_group_ranks=*/3, leaders};
    const char* const kind = leaders == TreeShape::Leaders::kBinomial ? "ChainBinomial" : "ChainChain";
    checks.push_back(ReduceCheck(absl::StrCat(kind, "Reduce"), [=](Transport& transport, const TensorList& values,
                                                                   ReduceOp op, int root, const Call& call) {
      return TreeReduce(transport, values, op, shape, root, call);
    }));
    checks.push_back(BroadcastCheck(absl::StrCat(kind, "Broadcast"),
                                    [=](Transport& transport, const TensorList& values, int root, const Call& call) {
                                      return TreeBroadcast(transport, values, shape, root, call);
                                    }));
  }
  return checks;
}

}  // namespace hooke
