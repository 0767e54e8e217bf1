#ifndef HOOKE_WORKER_BENCH_MEASURE_H_
#define HOOKE_WORKER_BENCH_MEASURE_H_

// Times the ways of doing collectives, on all ranks of a group at once. Called by hooke-bench's ranks, one thread each.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/group.h"
#include "mpi_group/tuning.h"
#include "worker/bench/carriers.h"
#include "worker/bench/fit_tuning.h"

namespace hooke {

struct MeasureOptions {
  Topology topology;                            // Of the groups.
  absl::Duration time_max = absl::Seconds(30);  // After it no further size is begun.
  uint64_t bytes_max = uint64_t{64} << 20;
  double margin = 0.05;  // As of FitCarrier and FitTuning.
  // Makes a group of all ranks; collective.
  std::function<absl::StatusOr<std::unique_ptr<Group>>(const Tuning& tuning)> make_group;
  // Called on every rank before each operation, and before "messages between nodes".
  std::function<void(absl::string_view operation)> on_operation;
};

struct Measured {
  // Of several nodes: by what messages between them went while all else was measured, and why.
  Tuning::BetweenNodes between_nodes = Tuning::BetweenNodes::kAuto;
  std::vector<CarrierTime> carriers;
  std::vector<Measurement> measurements;  // The same on every rank.
  uint64_t cells = 0;                     // Operations, kinds of values and sizes that were measured...
  uint64_t cells_planned = 0;             // ...of so many.
};

// Collective. Each way's result is checked before it is timed. At each size the ways take turns; a time is that of the
// slowest rank; what carries messages between nodes has a tenth of the time, operations share evenly what is left. An
// error of a group is returned as it is; INTERNAL: a way gave a wrong result. After an error the groups are unusable.
absl::StatusOr<Measured> Measure(const MeasureOptions& options);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_MEASURE_H_
