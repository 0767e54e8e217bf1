#ifndef HOOKE_WORKER_BENCH_MEASURE_H_
#define HOOKE_WORKER_BENCH_MEASURE_H_

// Times collectives with each algorithm that can carry them out (plan.h), on all ranks of a group at once. Each rank
// calls Measure from one thread.

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
  Topology topology;                            // Topology of the groups.
  absl::Duration time_max = absl::Seconds(30);  // Most time for everything; no size is begun later.
  uint64_t bytes_max = uint64_t{64} << 20;
  double margin = 0.05;  // `margin` of FitCarrier and FitTuning.
  // Makes a group of all ranks, by `tuning`. Collective.
  std::function<absl::StatusOr<std::unique_ptr<Group>>(const Tuning& tuning)> make_group;
  // Called on every rank before each operation, and before "messages between nodes".
  std::function<void(absl::string_view operation)> on_operation;
};

struct Measured {
  // The carrier between nodes with which everything else was measured, and the times that decided it. With one node
  // they are kAuto and empty.
  Tuning::BetweenNodes between_nodes = Tuning::BetweenNodes::kAuto;
  std::vector<CarrierTime> carriers;
  std::vector<Measurement> measurements;  // The same measurements on every rank.
  // Number of cells that were measured. A cell is an operation, a kind of values and a size.
  uint64_t cells = 0;
  uint64_t cells_planned = 0;  // Cells of the plan.
};

// Measures everything. Collective. Each candidate's result is checked before it is timed. At each size the candidates
// take turns, and a time is that of the slowest rank. With several nodes, a tenth of `time_max` is for choosing the
// carrier between them. The operations share the rest evenly. A group's error is returned as it is. INTERNAL: a
// candidate gave a wrong result.
absl::StatusOr<Measured> Measure(const MeasureOptions& options);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_MEASURE_H_
