#ifndef HOOKE_WORKER_METRICS_WORKER_METRICS_H_
#define HOOKE_WORKER_METRICS_WORKER_METRICS_H_

// The metrics page of a hooke-worker, from plain figures. Pure. docs/metrics.md has each metric with its meaning.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "wire/metrics/families.h"
#include "wire/metrics/folder_space.h"
#include "wire/metrics/process_figures.h"

namespace hooke {

// A worker's session with its coordinator. Times are on SteadyTime's clock; nullopt: it has not happened yet.
struct SessionFigures {
  bool connected = false;               // The coordinator has welcomed the worker on the present stream.
  uint64_t welcomes = 0;                // How many streams the coordinator has welcomed.
  std::optional<absl::Time> heard;      // When a message of the coordinator came last.
  std::optional<absl::Time> heartbeat;  // When a heartbeat was sent last.
};

struct NodeFigures {
  std::string version;
  ProcessFigures process;
  std::optional<SpaceFigures> space;  // Of --state-dir; nullopt: not known yet.
  uint32_t slots = 0;
  uint64_t slots_used = 0;       // Ranks of groups that run here.
  uint64_t groups = 0;           // Groups that run here, with one of their parts or as a whole.
  uint64_t cache_bytes = 0;      // Files of jobs in the cache.
  uint64_t cache_max_bytes = 0;  // The most bytes that the cache may have.
  SessionFigures session;
  absl::Time now;  // On SteadyTime's clock.
};

void AddWorkerMetrics(const NodeFigures& figures, MetricFamilies& families);

}  // namespace hooke

#endif  // HOOKE_WORKER_METRICS_WORKER_METRICS_H_
