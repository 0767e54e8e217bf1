#ifndef HOOKE_SERVER_CLUSTER_GENERATION_WAIT_H_
#define HOOKE_SERVER_CLUSTER_GENERATION_WAIT_H_

// Jobs whose number of groups changes: what the next generation waits for, and whether its data suffice. Pure.

#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "server/cluster/known.h"
#include "server/cluster/server_table.h"

namespace hooke {

// Returns why the next generation cannot begin yet, although all groups have left: which servers have not said how far
// these had come. Empty: all have.
std::string NotClosedText(const known::Job& job, const ServerTable& servers);

// Returns whether a server that has not said so is silent, so that nobody knows for how long the job waits.
bool AwaitsSilentServer(const known::Job& job, const ServerTable& servers);

// Checks that the job's data suffice for a step of these groups, by what each of the present groups has reported.
// Errors are those of CheckDataSuffices (next_generation.h).
absl::Status CheckDataSufficesFor(const known::Job& job, const v1::GroupsSpec& groups);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_GENERATION_WAIT_H_
