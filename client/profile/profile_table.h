#ifndef HOOKE_CLIENT_PROFILE_PROFILE_TABLE_H_
#define HOOKE_CLIENT_PROFILE_PROFILE_TABLE_H_

// The figures of job/profile/ as text for a terminal. Pure.

#include <string>
#include <vector>

#include "job/profile/profile_summary.h"
#include "job/profile/step_split.h"

namespace hooke {

// Returns the collectives as a table. It ends with a line end.
std::string ProfileTable(const ProfileSummary& summary);

// Returns the times of the last steps as a table. It ends with a line end.
std::string StepSplitTable(const std::vector<StepSplit>& groups);

// Returns "Cores that the servers keep busy: a:1 0.12, b:1 0.10\n", or "" if there are no servers.
std::string ServerCoresLine(const std::vector<ServerCores>& servers);

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROFILE_PROFILE_TABLE_H_
