#include "server/metrics/server_metrics.h"

#include "server/metrics/cluster_metrics.h"
#include "server/metrics/shard_metrics.h"

namespace hooke {

void AddServerMetrics(const DaemonFigures& figures, MetricFamilies& families) {
  AddProcessMetrics(figures.process, "hooke-server", figures.version, families);
  AddSpaceMetrics(figures.space, figures.now, families);
  constexpr char kCenters[] = "Centers of which this server holds a shard, by where the shard is.";
  families.Gauge("hooke_server_centers", kCenters, static_cast<double>(figures.stats.jobs.size()),
                 {{"where", "memory"}});
  families.Gauge("hooke_server_centers", kCenters, figures.stats.disk_centers, {{"where", "disk"}});
  constexpr char kBytes[] = "Memory that shards take, and disk that their snapshots take.";
  families.Gauge("hooke_server_center_bytes", kBytes, static_cast<double>(figures.stats.center_bytes),
                 {{"where", "memory"}});
  families.Gauge("hooke_server_center_bytes", kBytes, static_cast<double>(figures.stats.disk_bytes),
                 {{"where", "disk"}});
  families.Gauge("hooke_server_center_limit_bytes", "Memory that shards may take: --max-center-bytes.",
                 static_cast<double>(figures.max_center_bytes));
  families.Counter("hooke_server_snapshots_total", "Snapshots that this process has written.",
                   static_cast<double>(figures.parameters.snapshots));
  families.Counter("hooke_server_snapshot_failures_total", "Snapshots that this process could not write.",
                   static_cast<double>(figures.parameters.snapshot_failures));
  AddShardMetrics(figures.parameters.shards, {}, families);
  if (figures.coordinator.has_value()) AddClusterMetrics(*figures.coordinator, families);
}

}  // namespace hooke
