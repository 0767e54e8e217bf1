#ifndef HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_
#define HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_

// Which algorithm a collective takes. Pure; the same answer on every rank that passes the same: topology, workload and
// tuning. Ranks whose lists do not lie alike (some in an arena) are told so by the group.

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpi_group/operation.h"
#include "mpi_group/tuning.h"

namespace hooke {

struct Topology {
  int ranks = 1;
  int nodes = 1;
  int smallest_node = 1;  // Ranks of it.
  int largest_node = 1;
  bool shared_memory = false;   // The ranks of each node share memory; true where no node has two ranks.
  bool oversubscribed = false;  // A node has more ranks than cores.
};
// `ranks` of one node that share memory.
Topology OneNode(int ranks);

struct Workload {
  Operation operation = Operation::kAllReduce;
  uint64_t bytes = 0;
  bool shared = false;  // The values lie in an arena of the node's ranks.
  // A sum of 16-bit values: it is rounded once, so partial sums are not stored in 16 bits.
  bool rounds_once = false;

  friend bool operator==(const Workload& a, const Workload& b) {
    return a.operation == b.operation && a.bytes == b.bytes && a.shared == b.shared && a.rounds_once == b.rounds_once;
  }
};

struct Choice {
  Algorithm algorithm = Algorithm::kNothing;
  uint64_t chunk_bytes = uint64_t{256} << 10;
  int drivers = 0;           // Of kTwoLevel; at least 1.
  absl::string_view reason;  // Always set; of static duration.
};

// But for the reason.
bool SameWay(const Choice& a, const Choice& b);

Choice ChooseAlgorithm(const Topology& topology, const Workload& workload, const Tuning& tuning = {});

// A range of sizes with one choice; the bytes are powers of two, and both ends belong to it.
struct ExplainedChoice {
  Operation operation = Operation::kAllReduce;
  bool shared = false;
  bool rounds_once = false;  // Of sums of 16-bit values.
  uint64_t bytes_from = 0;
  uint64_t bytes_to = 0;  // TuningRule::kAnyBytes: all that is larger.
  Choice choice;
};
// In the order of kAllOperations, values in an arena first, sizes ascending. Sums of 16-bit values have ranges of their
// own, after those of all else, where anything about them differs.
std::vector<ExplainedChoice> ListChoices(const Topology& topology, const Tuning& tuning);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CHOOSE_ALGORITHM_H_
