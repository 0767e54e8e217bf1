#include "mpi_group/collectives/transport_collectives.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/all_gather.h"
#include "mpi_group/collectives/broadcast.h"
#include "mpi_group/collectives/halving_doubling.h"
#include "mpi_group/collectives/pairwise.h"
#include "mpi_group/collectives/recursive_doubling.h"
#include "mpi_group/collectives/reference.h"
#include "mpi_group/collectives/ring.h"
#include "mpi_group/collectives/rooted_reduce.h"

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
  };
  const auto by_tree = [&checks](const char* kind, const std::function<TreeShape(int ranks)>& shape) {
    checks.push_back(ReduceCheck(absl::StrCat(kind, "Reduce"), [=](Transport& transport, const TensorList& values,
                                                                   ReduceOp op, int root, const Call& call) {
      return TreeReduce(transport, values, op, shape(transport.size()), root, call);
    }));
    checks.push_back(BroadcastCheck(absl::StrCat(kind, "Broadcast"),
                                    [=](Transport& transport, const TensorList& values, int root, const Call& call) {
                                      return TreeBroadcast(transport, values, shape(transport.size()), root, call);
                                    }));
  };
  by_tree("Binomial", [](int) { return BinomialShape(); });
  by_tree("Chain", ChainShape);
  by_tree("ChainBinomial", [](int) { return TreeShape{3, TreeShape::Leaders::kBinomial}; });
  by_tree("ChainChain", [](int) { return TreeShape{3, TreeShape::Leaders::kChain}; });
  return checks;
}

}  // namespace hooke
