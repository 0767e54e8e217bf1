#ifndef HOOKE_CLIENT_COMMANDS_LEFT_RUN_H_
#define HOOKE_CLIENT_COMMANDS_LEFT_RUN_H_

// A `hooke run` that is killed leaves its job in the store of the cluster that it had started. The next cluster in that
// folder would run the job again, although nobody follows it. So the run writes the job's id into the folder, and the
// next cluster cancels that job.

#include <string>

#include "absl/status/status.h"
#include "client/commands/command.h"

namespace hooke {

// Writes the job of this run into the cluster's folder.
absl::Status NoteRun(const std::string& state_dir, const std::string& job_id);
// Removes what NoteRun wrote. Must be called when the job has ended or is cancelled.
void ForgetRun(const std::string& state_dir);

// Cancels the job that a killed run left in the folder, and says so on `invocation.err`. `invocation.coordinator` is
// the coordinator of the cluster that was just started there. Does nothing if there is no such job.
void CancelLeftRun(const Invocation& invocation, const std::string& state_dir);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_LEFT_RUN_H_
