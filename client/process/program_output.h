#ifndef HOOKE_CLIENT_PROCESS_PROGRAM_OUTPUT_H_
#define HOOKE_CLIENT_PROCESS_PROGRAM_OUTPUT_H_

// Runs a program and collects what it prints. Call it from one thread at a time.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/process/interrupts.h"

namespace hooke {

struct ProgramOutput {
  int exit_code = -1;  // 128 + N if signal N ended the program, as in a shell.
  // The program's stdout. Its stderr goes to this process's stderr.
  std::string text;
};

// Runs the program until it ends. An interrupt sends it SIGTERM, and SIGKILL if it has not ended 10 seconds later.
// Further interrupts are ignored, so that it can clean up. A program that closes its stdout has 10 seconds to end, and
// is then killed. FAILED_PRECONDITION: it cannot be started. OUT_OF_RANGE: it prints more than 64 MiB. After any error
// it no longer runs.
absl::StatusOr<ProgramOutput> RunForOutput(const std::vector<std::string>& arguments, Interrupts& interrupts);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_PROGRAM_OUTPUT_H_
