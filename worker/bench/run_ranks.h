#ifndef HOOKE_WORKER_BENCH_RUN_RANKS_H_
#define HOOKE_WORKER_BENCH_RUN_RANKS_H_

// Runs hooke-bench's ranks under mpirun on this machine. Called by its main, from one thread.

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

struct RanksOptions {
  std::string program;                   // Absolute path of hooke-bench.
  std::vector<std::string> arguments;    // Of each rank; "--document FILE" follows.
  std::string mpirun;                    // A name on the PATH, or a path; empty: that of the MPI library built with.
  std::string path;                      // PATH.
  std::vector<std::string> environment;  // "NAME=value": this process's own.
  int ranks = 2;
  sigset_t stop_signals;  // Blocked in every thread; one of them ends the ranks.
  // What ranks and mpirun say, line by line, on another thread.
  std::function<void(absl::string_view line)> on_line;
};

// The document that rank 0 wrote. NOT_FOUND: there is no mpirun. CANCELLED: a signal came. UNAVAILABLE: the ranks
// failed; what they said is the reason. Whatever happens, no rank and no file of theirs is left.
absl::StatusOr<std::string> RunRanks(const RanksOptions& options);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_RUN_RANKS_H_
