#ifndef HOOKE_CLIENT_COMMANDS_LOGS_COMMAND_H_
#define HOOKE_CLIENT_COMMANDS_LOGS_COMMAND_H_

// Prints a job's log, for `hooke logs` and `hooke run`.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"

namespace hooke {

struct LogOptions {
  std::string job;
  bool follow = false;                    // Whether to go on until the job ends.
  std::function<absl::Status()> goes_on;  // Called several times a second; an error ends the reading. May be empty.
};

// Prints the job's log on `invocation.out`. On a terminal the text is made printable, with times in the reader's zone.
// Returns OK at the log's end, or when `invocation.out` takes no more text. Otherwise returns the error of `goes_on`,
// or the coordinator's error in words for people.
absl::Status PrintLog(const Invocation& invocation, CoordinatorClient& coordinator, const LogOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_LOGS_COMMAND_H_
