#ifndef HOOKE_MPI_GROUP_TUNING_H_
#define HOOKE_MPI_GROUP_TUNING_H_

// The rules by which ChooseAlgorithm decides. A plain value that `hooke bench tune` measures and writes for a cluster,
// and that jobs read. As text it is JSON:
//
//   {"slot_bytes": 262144,
//    "rules": [{"operation": "all-reduce", "where": "one-node", "values": "private", "ranks_max": 2,
//               "bytes_max": 4194304, "algorithm": "staged", "chunk_bytes": 65536}]}
//
// The first rule that fits a call decides. The built-in rules (DefaultRules) follow those of a Tuning, so a Tuning
// needs only the rules that differ.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpi_group/operation.h"

namespace hooke {

// In groups of at most so many ranks, sockets connect all pairs of ranks on different nodes. In larger groups they
// connect the pairs that two-level algorithms use (sockets/socket_mesh.h), so the rules avoid other algorithms there.
inline constexpr int kAllPairsRanks = 32;

struct TuningRule {
  enum class Where : uint8_t { kAnywhere, kOneNode, kSeveralNodes };
  enum class Values : uint8_t { kAny, kArena, kPrivate };

  static constexpr uint64_t kAnyBytes = std::numeric_limits<uint64_t>::max();
  static constexpr int kAnyRanks = std::numeric_limits<int>::max();

  // The calls that the rule is for.
  Operation operation = Operation::kAllReduce;
  Where where = Where::kAnywhere;
  Values values = Values::kAny;
  int ranks_max = kAnyRanks;
  bool oversubscribed = false;     // If true, the rule holds only where a node has more ranks than cores.
  uint64_t bytes_max = kAnyBytes;  // Largest size of a call's values.
  // The algorithm for these calls. `chunk_bytes` is the size of a message, or of a chunk in a slot of shared memory.
  Algorithm algorithm = Algorithm::kNothing;
  uint64_t chunk_bytes = uint64_t{256} << 10;
  // Two-level only: how many ranks of each node exchange messages with other nodes. 0: as many as the smallest node has
  // ranks.
  int drivers = 0;
};

bool operator==(const TuningRule& a, const TuningRule& b);

struct Tuning {
  // Size of a rank's slot in shared memory, which bounds chunk_bytes there. A group takes two to three times as much
  // memory per rank.
  uint64_t slot_bytes = uint64_t{256} << 10;
  // The carrier of messages between nodes. kAuto takes Hooke's own sockets. If a node has an
  // RDMA device, it takes the faster of the two (links/choose_carrier.h).
  enum class BetweenNodes : uint8_t { kAuto, kMpi, kSockets };
  BetweenNodes between_nodes = BetweenNodes::kAuto;
  std::vector<TuningRule> rules;
};

// Returns "auto", "mpi" or "sockets".
absl::string_view NameOf(Tuning::BetweenNodes between);

// The built-in rules. The last rule of each operation fits every call of that operation.
const std::vector<TuningRule>& DefaultRules();

// Reads a tuning from JSON. INVALID_ARGUMENT says what is wrong, and in which rule if it is in one.
absl::StatusOr<Tuning> ParseTuning(absl::string_view text);
// Formats a tuning as JSON that ParseTuning reads, one rule per line.
std::string FormatTuning(const Tuning& tuning);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TUNING_H_
