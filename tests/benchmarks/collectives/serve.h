#ifndef HOOKE_TESTS_BENCHMARKS_COLLECTIVES_SERVE_H_
#define HOOKE_TESTS_BENCHMARKS_COLLECTIVES_SERVE_H_

// A rank under the benchmark's command (../collectives.py). It waits for commands in recv on a Unix socket, so that it
// takes no processor time while other libraries are timed. Commands, one per line, each answered by one JSON line:
//   prepare OPERATION COUNT    {"rivals": [{"name": "ring", "correct": true, "us": 12.5}]}: checks all, times one call
//   time INDEX CALLS WARMUPS ROW   {"us": [12.5]}: this rank's time of each call: its values written, barrier, call.
// With a ROW above 1: of as many calls one after the other, divided by their number.
// An error is answered with {"error": MESSAGE} and ends the serving. The end of the stream ends it well.

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "tests/benchmarks/collectives/rival.h"

namespace hooke {

struct ServeOptions {
  int rank = 0;
  int size = 1;
  std::string socket;   // Path.
  std::string barrier;  // Path: start_barrier.h.
};

// The flags that all programs have: --socket and --barrier.
void AddServeFlags(CLI::App& app, ServeOptions& options);

absl::Status Serve(const ServeOptions& options, const Prepare& prepare);

}  // namespace hooke

#endif  // HOOKE_TESTS_BENCHMARKS_COLLECTIVES_SERVE_H_
