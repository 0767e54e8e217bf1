#include "mpi_group/choose_algorithm.h"

namespace hooke {

absl::string_view NameOf(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all-reduce";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kAllGather:
      return "all-gather";
    case Operation::kBarrier:
      return "barrier";
  }
  return "unknown operation";
}

Choice ChooseAlgorithm(const Topology& topology, const Workload& workload) {
  if (topology.ranks == 1) return {Algorithm::kNothing, "a single rank has it all"};
  if (workload.operation == Operation::kBarrier) return {Algorithm::kDissemination, "fewest steps for a barrier"};
  if (workload.bytes == 0) return {Algorithm::kNothing, "no values"};
  switch (workload.operation) {
    case Operation::kBroadcast:
      return {Algorithm::kBinomialTree, "one source: fewest steps"};
    case Operation::kAllGather:
      if (workload.shared) return {Algorithm::kSharedMemory, "values in shared memory: no messages"};
      return {Algorithm::kRing, "every link carries each part once"};
    default:
      break;
  }
  if (workload.shared) return {Algorithm::kSharedMemory, "values in shared memory: no messages"};
  if (topology.ranks > 2 && workload.bytes <= kTinyBytes) {
    return {Algorithm::kReference, "tiny: the number of messages in a row decides"};
  }
  return {Algorithm::kRing, "every rank sends the least bytes possible"};
}

}  // namespace hooke
