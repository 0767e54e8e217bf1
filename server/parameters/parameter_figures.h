#ifndef HOOKE_SERVER_PARAMETERS_PARAMETER_FIGURES_H_
#define HOOKE_SERVER_PARAMETERS_PARAMETER_FIGURES_H_

// Figures of the shards and snapshots of a server, as plain values for people.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/parameters/exchange_meter.h"

namespace hooke {

// A shard in memory.
struct ShardFigures {
  std::string job_id;
  uint64_t memory_bytes = 0;
  uint64_t updates = 0;  // Shard::updates().
  ExchangeCounts exchanges;
  // How old the shard's state on disk is: the time since the shard was the same there. nullopt: it has no snapshot yet.
  std::optional<absl::Duration> snapshot_age;
  // How long the last snapshot that this process has written took; nullopt: it has written none.
  std::optional<absl::Duration> snapshot_took;
};

struct ParameterFigures {
  std::vector<ShardFigures> shards;  // By job id.
  uint64_t snapshots = 0;            // Written by this process.
  uint64_t snapshot_failures = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_PARAMETER_FIGURES_H_
