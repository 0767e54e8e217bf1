#ifndef HOOKE_SERVER_METRICS_SHARD_METRICS_H_
#define HOOKE_SERVER_METRICS_SHARD_METRICS_H_

// Metrics of the shards that a server holds in memory. Pure.

#include <cstddef>
#include <vector>

#include "server/parameters/parameter_figures.h"
#include "wire/metrics/families.h"

namespace hooke {

struct ShardMetricLimits {
  size_t shards_max = 200;   // Of the others only their number is told.
  size_t groups_max = 1024;  // Of all shards together.
};

void AddShardMetrics(const std::vector<ShardFigures>& shards, const ShardMetricLimits& limits,
                     MetricFamilies& families);

}  // namespace hooke

#endif  // HOOKE_SERVER_METRICS_SHARD_METRICS_H_
