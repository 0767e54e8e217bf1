#ifndef HOOKE_CLIENT_COMMANDS_SEND_FILES_H_
#define HOOKE_CLIENT_COMMANDS_SEND_FILES_H_

// `hooke submit` and `hooke run` send a job's files before they submit the job. After that, `hooke submit` names the
// job's sites that have no workers.

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/files/collect_files.h"
#include "proto/job.pb.h"

namespace hooke {

// Uploads the job's files, if it has some, and returns how long that took. Says so on `err`, except with --output json.
// Errors are those of CoordinatorClient::PutFiles.
absl::StatusOr<absl::Duration> SendFiles(const Invocation& invocation, CoordinatorClient& coordinator,
                                         const v1::JobSpec& job, const CollectedFiles& files,
                                         const std::function<bool()>& goes_on);

// Says on `err` which of the job's `sites` no worker has. That is no error, because workers come and go.
void SayUnknownSites(const Invocation& invocation, CoordinatorClient& coordinator, const v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_SEND_FILES_H_
