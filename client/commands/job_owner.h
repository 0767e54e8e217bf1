#ifndef HOOKE_CLIENT_COMMANDS_JOB_OWNER_H_
#define HOOKE_CLIENT_COMMANDS_JOB_OWNER_H_

// The owner of a job whose file names none: the user that runs this process.

#include <string>

#include "proto/job.pb.h"

namespace hooke {

// Returns the name of the user that runs this process. Empty: it has none that could be an owner's name.
std::string NameOfUser();

// Sets the job's owner to NameOfUser(), unless it has one.
void SetOwner(v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_JOB_OWNER_H_
