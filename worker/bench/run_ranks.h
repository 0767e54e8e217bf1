#ifndef HOOKE_WORKER_BENCH_RUN_RANKS_H_
#define HOOKE_WORKER_BENCH_RUN_RANKS_H_

// Runs hooke-bench's ranks under mpirun on this machine. Called from one thread.

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

struct RanksOptions {
  std::string program;                   // Absolute path of hooke-bench.
  std::vector<std::string> arguments;    // Arguments of each rank; "--document FILE" is appended.
  std::string mpirun;                    // A name on the PATH, or a path; empty: the linked MPI library's own.
  std::string path;                      // Value of PATH.
  std::vector<std::string> environment;  // "NAME=value": that of this process.
  int ranks = 2;
  sigset_t stop_signals;  // Any of them ends the ranks. They must be blocked in every thread.
  // Called for each line of output of the ranks and mpirun, on another thread.
  std::function<void(absl::string_view line)> on_line;
};

// Returns the document that rank 0 wrote. NOT_FOUND: there is no mpirun. CANCELLED: a signal came. UNAVAILABLE: the
// ranks failed, and their output says why. In all cases no rank and no file of theirs is left.
absl::StatusOr<std::string> RunRanks(const RanksOptions& options);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_RUN_RANKS_H_
