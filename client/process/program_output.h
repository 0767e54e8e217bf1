#ifndef HOOKE_CLIENT_PROCESS_PROGRAM_OUTPUT_H_
#define HOOKE_CLIENT_PROCESS_PROGRAM_OUTPUT_H_

// Runs a program beside `hooke` for what it prints. Used by command_bench.cc. One thread.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/process/interrupts.h"

namespace hooke {

struct ProgramOutput {
  int exit_code = -1;  // As a shell has it.
  std::string text;    // Of stdout; stderr is this process's.
};

// Returns at the program's end. At an interrupt it gets SIGTERM, and SIGKILL if it has not ended 10 seconds
// later; further interrupts change nothing, so that it can clean up. FAILED_PRECONDITION: it cannot be started.
// OUT_OF_RANGE: it prints more than 64 MiB. Nothing of it is left.
absl::StatusOr<ProgramOutput> RunForOutput(const std::vector<std::string>& arguments, Interrupts& interrupts);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_PROGRAM_OUTPUT_H_
