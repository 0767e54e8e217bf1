#ifndef HOOKE_WIRE_METRICS_PROCESS_FIGURES_H_
#define HOOKE_WIRE_METRICS_PROCESS_FIGURES_H_

// The processor time, memory and files that this process uses. The metrics' names are those of Prometheus' own
// libraries.

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "wire/metrics/families.h"

namespace hooke {

struct ProcessFigures {
  absl::Duration cpu_time;      // The CPU time of all threads since the process's start.
  uint64_t resident_bytes = 0;  // 0: not known. That holds for `open_files` and `open_files_max`, too.
  uint64_t open_files = 0;
  uint64_t open_files_max = 0;  // The most files that the process may open.
  absl::Time started;           // By the machine's clock.
};

// Asks the kernel. Takes microseconds and touches no disk. Call it from any thread.
ProcessFigures ReadProcessFigures();

// Adds the metrics process_* and hooke_build_info. `program` names the daemon, for example "hooke-server".
void AddProcessMetrics(const ProcessFigures& figures, const std::string& program, const std::string& version,
                       MetricFamilies& families);

}  // namespace hooke

#endif  // HOOKE_WIRE_METRICS_PROCESS_FIGURES_H_
