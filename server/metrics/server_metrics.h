#ifndef HOOKE_SERVER_METRICS_SERVER_METRICS_H_
#define HOOKE_SERVER_METRICS_SERVER_METRICS_H_

// The metrics page of a hooke-server, from plain figures. Pure. docs/metrics.md has each metric with its meaning.

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/cluster/cluster_figures.h"
#include "server/parameters/parameter_figures.h"
#include "server/parameters/parameter_server.h"
#include "wire/metrics/families.h"
#include "wire/metrics/folder_space.h"
#include "wire/metrics/process_figures.h"

namespace hooke {

struct DaemonFigures {
  std::string version;
  ProcessFigures process;
  std::optional<SpaceFigures> space;  // Of --state-dir; nullopt: not known yet.
  ParameterServerStats stats;
  ParameterFigures parameters;
  uint64_t max_center_bytes = 0;
  std::optional<CoordinatorFigures> coordinator;  // nullopt: this server is not the coordinator.
  absl::Time now;                                 // On SteadyTime's clock.
};

void AddServerMetrics(const DaemonFigures& figures, MetricFamilies& families);

}  // namespace hooke

#endif  // HOOKE_SERVER_METRICS_SERVER_METRICS_H_
