#ifndef HOOKE_TESTS_BENCHMARKS_COLLECTIVES_SERVE_H_
#define HOOKE_TESTS_BENCHMARKS_COLLECTIVES_SERVE_H_

// Runs a rank of the benchmark, driven by ../collectives.py. Between commands the rank sleeps in recv on a Unix socket,
// so that it takes no processor time while other libraries are timed. Commands are lines, each answered by one line of
// JSON:
//  prepare OPERATION COUNT       {"rivals": [{"name": "ring", "correct": true, "us": 12.5}]}
//                                Checks all ways and times one call of each.
//  time INDEX CALLS WARMUPS ROW  {"us": [12.5]}
//                                This rank's time for each call: write the values, barrier, call. With ROW > 1, a time
//                                is that of ROW calls in succession, divided by ROW.
// The answer {"error": MESSAGE} to a command ends Serve with an error. The end of the stream ends it without one.

#include <string>

#include "absl/status/status.h"
#include "flags/command_line.h"
#include "tests/benchmarks/collectives/rival.h"

namespace hooke {

struct ServeOptions {
  int rank = 0;
  int size = 1;
  std::string socket;   // Path.
  std::string barrier;  // Path of the file that start_barrier.h maps.
};

// The flags that all programs have: --socket and --barrier.
void AddServeFlags(Command& command, ServeOptions& options);

absl::Status Serve(const ServeOptions& options, const Prepare& prepare);

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COLLECTIVES_SERVE_H_
