#ifndef HOOKE_CLIENT_COMMANDS_SEND_FILES_H_
#define HOOKE_CLIENT_COMMANDS_SEND_FILES_H_

// Before they submit a job with a command, `hooke submit` and `hooke run` send its files and name sites without
// workers.

#include <functional>

#include "absl/status/status.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/files/collect_files.h"
#include "proto/job.pb.h"

namespace hooke {

// Uploads the job's files, if it has some, and says so on `err`. Errors are those of CoordinatorClient::PutFiles.
absl::Status SendFiles(const Invocation& invocation, CoordinatorClient& coordinator, const v1::JobSpec& job,
                       const CollectedFiles& files, const std::function<bool()>& goes_on);

// Says on `err` which of the job's `sites` no worker has. That is no error, because workers come and go.
void SayUnknownSites(const Invocation& invocation, CoordinatorClient& coordinator, const v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_SEND_FILES_H_
