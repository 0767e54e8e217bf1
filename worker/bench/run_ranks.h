#ifndef HOOKE_WORKER_BENCH_RUN_RANKS_H_
#define HOOKE_WORKER_BENCH_RUN_RANKS_H_

// Runs hooke-bench's ranks under mpirun on this machine. Only one thread may call it.

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

struct RanksOptions {
  std::string program;                 // Absolute path of hooke-bench.
  std::vector<std::string> arguments;  // Arguments of each rank; "--document FILE" is appended.
  // A name on the PATH, or a path. Empty: the mpirun of the MPI library that we are linked with.
  std::string mpirun;
  std::string path;                      // Value of the environment's PATH.
  std::vector<std::string> environment;  // The environment of this process, as "NAME=value".
  int ranks = 2;
  sigset_t stop_signals;  // Any of these signals ends the ranks. They must be blocked in every thread.
  // Called for each line of output of the ranks and mpirun, on another thread.
  std::function<void(absl::string_view line)> on_line;
};

// Runs the ranks and returns the document that rank 0 wrote. NOT_FOUND: there is no mpirun. FAILED_PRECONDITION: there
// is no folder for temporary files. CANCELLED: a signal came. UNAVAILABLE: the ranks failed, and their output says why.
// When the call returns, the ranks have ended, and no file of theirs is left.
absl::StatusOr<std::string> RunRanks(const RanksOptions& options);

}  // namespace hooke

#endif  // HOOKE_WORKER_BENCH_RUN_RANKS_H_
