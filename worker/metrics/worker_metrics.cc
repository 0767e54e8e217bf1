#include "worker/metrics/worker_metrics.h"

namespace hooke {

void AddWorkerMetrics(const NodeFigures& figures, MetricFamilies& families) {
  AddProcessMetrics(figures.process, "hooke-worker", figures.version, families);
  AddSpaceMetrics(figures.space, figures.now, families);
  families.Gauge("hooke_node_slots", "Ranks that may run on this worker at once.", figures.slots);
  families.Gauge("hooke_node_slots_used", "Ranks of the groups that run on this worker.",
                 static_cast<double>(figures.slots_used));
  families.Gauge("hooke_node_groups", "Groups that run on this worker, as a whole or with one of their parts.",
                 static_cast<double>(figures.groups));
  families.Gauge("hooke_node_file_cache_bytes", "Files of jobs in the worker's cache.",
                 static_cast<double>(figures.cache_bytes));
  families.Gauge("hooke_node_file_cache_limit_bytes", "Files of jobs that the cache may hold: --files-cache-bytes.",
                 static_cast<double>(figures.cache_max_bytes));
  const SessionFigures& session = figures.session;
  families.Gauge("hooke_node_connected", "1 while the coordinator has this worker as a member, otherwise 0.",
                 session.connected ? 1 : 0);
  families.Counter("hooke_node_welcomes_total", "Times that the coordinator has taken this worker as a member.",
                   static_cast<double>(session.welcomes));
  if (session.heard.has_value()) {
    families.Gauge("hooke_node_coordinator_unheard_seconds", "Time since the coordinator has sent something last.",
                   absl::ToDoubleSeconds(figures.now - *session.heard));
  }
  if (session.heartbeat.has_value()) {
    families.Gauge("hooke_node_heartbeat_age_seconds", "Time since this worker has sent a heartbeat last.",
                   absl::ToDoubleSeconds(figures.now - *session.heartbeat));
  }
}

}  // namespace hooke
