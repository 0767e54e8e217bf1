#ifndef HOOKE_CLIENT_COMMANDS_WATCH_COMMAND_H_
#define HOOKE_CLIENT_COMMANDS_WATCH_COMMAND_H_

// Shows a job until it ends or is held, for `hooke watch` and `hooke submit --watch`.

#include <string>

#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/process/interrupts.h"

namespace hooke {

// Shows the job until it ends or is held. On a terminal the picture is redrawn in place. After success of a job whose
// center was evaluated, the last line on `out` is "center test accuracy: 90.12 %", except with --output json. If the
// evaluation has no accuracy, the line has its other results. Returns the job's exit code, kFailed after
// `patience_seconds` without the coordinator, or kInterrupted after Ctrl-C.
int WatchToTheEnd(const Invocation& invocation, CoordinatorClient& coordinator, const std::string& job_id,
                  double patience_seconds, Interrupts& interrupts);

// Returns why a job that failed, was cancelled or is held did not succeed: "job fashion-1 failed: ...".
std::string FailureText(const v1::JobStatus& job);

constexpr double kDefaultPatienceSeconds = 300;
void AddPatienceFlag(Command& command, double& patience_seconds);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_WATCH_COMMAND_H_
