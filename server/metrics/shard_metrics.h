#ifndef HOOKE_SERVER_METRICS_SHARD_METRICS_H_
#define HOOKE_SERVER_METRICS_SHARD_METRICS_H_

// Metrics of the shards that a server holds in memory. Pure.

#include <cstddef>
#include <vector>

#include "server/parameters/parameter_figures.h"
#include "wire/metrics/families.h"

namespace hooke {

struct ShardMetricLimits {
  // The most shards with samples of their own. Of the others the metrics only give the number.
  size_t shards_max = 200;
  size_t groups_max = 1024;  // The most groups with samples of their own, in all shards together.
};

void AddShardMetrics(const std::vector<ShardFigures>& shards, const ShardMetricLimits& limits,
                     MetricFamilies& families);

}  // namespace hooke

#endif  // HOOKE_SERVER_METRICS_SHARD_METRICS_H_
