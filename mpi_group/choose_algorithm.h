#ifndef HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_
#define HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_

// Which algorithm a collective takes. Pure; the same answer on every rank, for it is made of what all ranks know alike.

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hooke {

enum class Operation { kAllReduce, kBroadcast, kAllGather, kBarrier };

enum class Algorithm {
  kNothing,        // A single rank, or no values.
  kReference,      // Through rank 0 (reference.h).
  kRing,           // ring.h, all_gather.h.
  kBinomialTree,   // broadcast.h
  kDissemination,  // barrier.h
  kSharedMemory,   // In place, on the peers' memory (shared_arena.h).
};

struct Topology {
  int ranks = 1;
};

struct Workload {
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;
  bool shared = false;  // The values lie in an arena that all ranks can reach.
};

struct Choice {
  Algorithm algorithm = Algorithm::kNothing;
  absl::string_view reason;  // Always set; of static duration.
};

// All-reduces of at most this many bytes, among more than two ranks, go through rank 0.
inline constexpr uint64_t kTinyBytes = 1024;

// As messages name it: "all-reduce".
absl::string_view NameOf(Operation operation);

Choice ChooseAlgorithm(const Topology& topology, const Workload& workload);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_
