#ifndef HOOKE_MPI_GROUP_TUNING_H_
#define HOOKE_MPI_GROUP_TUNING_H_

// What ChooseAlgorithm goes by: a plain value, written by `hooke bench tune` for the cluster at hand, read by jobs. As
// text it is JSON:
//
//   {"slot_bytes": 262144,
//    "rules": [{"operation": "all-reduce", "where": "one-node", "values": "private", "ranks_max": 2,
//               "bytes_max": 4194304, "algorithm": "staged", "chunk_bytes": 65536}]}
//
// The first rule that fits a call decides; the rules that come with Hooke (DefaultRules) follow after those of a
// Tuning, so that it need not speak of everything.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mpi_group/operation.h"

namespace hooke {

struct TuningRule {
  enum class Where : uint8_t { kAnywhere, kOneNode, kSeveralNodes };
  enum class Values : uint8_t { kAny, kArena, kPrivate };

  static constexpr uint64_t kAnyBytes = std::numeric_limits<uint64_t>::max();
  static constexpr int kAnyRanks = std::numeric_limits<int>::max();

  // For what.
  Operation operation = Operation::kAllReduce;
  Where where = Where::kAnywhere;
  Values values = Values::kAny;
  int ranks_max = kAnyRanks;
  bool oversubscribed = false;     // Only where a node has more ranks than cores.
  uint64_t bytes_max = kAnyBytes;  // Of the values.
  // How: `chunk_bytes` of a message, or of a slot's use.
  Algorithm algorithm = Algorithm::kNothing;
  uint64_t chunk_bytes = uint64_t{256} << 10;
  // Two-level: so many ranks of each node talk to the other nodes. 0: as many as the smallest node has.
  int drivers = 0;
};

bool operator==(const TuningRule& a, const TuningRule& b);

struct Tuning {
  // What a rank can bring to a slot at once: the bound of chunk_bytes in shared memory. A group takes about three times
  // as much memory per rank.
  uint64_t slot_bytes = uint64_t{256} << 10;
  // What carries messages between nodes. kAuto: sockets of Hooke's own, but where a node has an RDMA device: MPI.
  enum class BetweenNodes : uint8_t { kAuto, kMpi, kSockets };
  BetweenNodes between_nodes = BetweenNodes::kAuto;
  std::vector<TuningRule> rules;
};

// "auto", "mpi" or "sockets".
absl::string_view NameOf(Tuning::BetweenNodes between);

const std::vector<TuningRule>& DefaultRules();

// INVALID_ARGUMENT says which rule, what is wrong and what is allowed.
absl::StatusOr<Tuning> ParseTuning(absl::string_view text);
// One rule per line.
std::string FormatTuning(const Tuning& tuning);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TUNING_H_
