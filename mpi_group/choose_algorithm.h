#ifndef HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_
#define HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_

// Chooses the algorithm of a collective. A pure function: ranks that pass the same topology, workload and tuning get
// the same answer. Ranks that disagree on whether their values lie in an arena may get different answers; the group
// reports that as an error.

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpi_group/operation.h"
#include "mpi_group/tuning.h"

namespace hooke {

struct Topology {
  int ranks = 1;
  int nodes = 1;
  int smallest_node = 1;  // Number of ranks on the node with the fewest.
  int largest_node = 1;
  bool shared_memory = false;   // The ranks of each node share memory; also true if no node has two ranks.
  bool oversubscribed = false;  // A node has more ranks than cores.
};
// The topology of `ranks` ranks that share one node's memory.
Topology OneNode(int ranks);

struct Workload {
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;
  bool shared = false;  // The values lie in an arena of the node's ranks.
  // True for sums and means of 16-bit values: they are rounded once, at the end, so their partial sums need 32 bits
  // each.
  bool rounds_once = false;

  friend bool operator==(const Workload& a, const Workload& b) {
    return a.operation == b.operation && a.bytes == b.bytes && a.shared == b.shared && a.rounds_once == b.rounds_once;
  }
};

struct Choice {
  Algorithm algorithm = Algorithm::kNothing;
  uint64_t chunk_bytes = uint64_t{256} << 10;
  int drivers = 0;           // Two-level only: ranks of each node that talk to other nodes, at least 1.
  absl::string_view reason;  // Always set; has static lifetime.
};

// True if `a` and `b` are equal in everything but the reason.
bool SameWay(const Choice& a, const Choice& b);

// The first rule of the tuning that fits decides, then the first built-in one (DefaultRules). But an all-reduce by
// messages between nodes, of more than 16 ranks, is the fastest by a model (time_model.h) if no rule of the tuning fits
// it. Where a ring is chosen for sums that are rounded once, of more than two ranks, the choice is pairwise.
Choice ChooseAlgorithm(const Topology& topology, const Workload& workload, const Tuning& tuning = {});

// Chooses the algorithm that the i-th drivers of all nodes run among themselves inside the two-level `choice`. It is
// the choice for a group with one rank per node and the bytes of one driver.
Choice ChooseBetweenNodes(const Topology& topology, const Workload& workload, const Choice& choice,
                          const Tuning& tuning = {});

// A range of sizes with one choice. Both ends are powers of two and belong to the range. A rule's bound that is no
// power of two shows as the power of two below it.
struct ExplainedChoice {
  Operation operation = Operation::kAllReduce;
  bool shared = false;
  bool rounds_once = false;  // True if the range is for sums and means of 16-bit values.
  uint64_t bytes_from = 0;
  uint64_t bytes_to = 0;  // TuningRule::kAnyBytes: no upper bound.
  Choice choice;
  Choice between;  // The choice between the nodes; kNothing unless `choice` is two-level.
};
// Returns all choices, in the order of kAllOperations. For each operation, values in an arena come first, then other
// values; sizes ascend. If sums of 16-bit values are chosen differently, a second list of ranges with rounds_once
// follows the first.
std::vector<ExplainedChoice> ListChoices(const Topology& topology, const Tuning& tuning);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_
