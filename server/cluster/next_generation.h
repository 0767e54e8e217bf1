#ifndef HOOKE_SERVER_CLUSTER_NEXT_GENERATION_H_
#define HOOKE_SERVER_CLUSTER_NEXT_GENERATION_H_

// The change of a job's number of groups. Each change begins a new generation of the job. Pure.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "server/records/records.h"

namespace hooke {

// Returns the job's groups with `count` of the kind that runs at `site`. An empty site means the only kind.
// INVALID_ARGUMENT: the count is out of range. NOT_FOUND: no kind, or more than one, runs there.
// FAILED_PRECONDITION: a job of this rule cannot change its groups.
absl::StatusOr<v1::GroupsSpec> ScaledGroups(const v1::JobSpec& job, const std::string& site, uint32_t count);

// Returns the job with these groups. An elastic job's alpha that is the default for its present groups becomes the
// default for these.
v1::JobSpec WithGroups(v1::JobSpec job, const v1::GroupsSpec& groups);

// Checks that a step of all these groups takes no more samples than the job trains in an epoch: then no group could
// make a step, and the job would fail. `progress` is that of one of the job's groups; without it, and for a command,
// whose data are not known, there is nothing to check. FAILED_PRECONDITION: it takes more.
absl::Status CheckDataSuffices(const v1::JobSpec& job, const v1::RankProgress& progress, const v1::GroupsSpec& groups);

// Ends the job's present generation, and begins that of `generations.wanted`. All of its groups wait then. The groups
// of a kind that were there before go on with the data that they had trained and with their own states, as far as they
// keep their numbers. If no group was ever started, the job just has other groups. `wanted` is set, and no group is
// placed.
void BeginGeneration(JobRecord& job);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_NEXT_GENERATION_H_
