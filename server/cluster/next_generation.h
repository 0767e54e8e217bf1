#ifndef HOOKE_SERVER_CLUSTER_NEXT_GENERATION_H_
#define HOOKE_SERVER_CLUSTER_NEXT_GENERATION_H_

// The change of a job's number of groups. Each change begins a new generation of the job. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/coordinator.pb.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "server/records/records.h"

namespace hooke {

// The most generations that a server is told to end at once. As many it may answer about.
constexpr int kGenerationEndsMax = 4096;

// Returns the job's groups with `count` of the kind that runs at `site`. An empty site means the only kind.
// INVALID_ARGUMENT: the count is out of range. NOT_FOUND: no kind, or more than one, runs there.
// FAILED_PRECONDITION: a job of this rule cannot change its groups.
absl::StatusOr<v1::GroupsSpec> ScaledGroups(const v1::JobSpec& job, const std::string& site, uint32_t count);

// Checks that one step of all these groups takes at most the samples that the job trains in an epoch. If it took more,
// no group could make a step, and the job would fail. `progress` is that of one of the job's groups; without it, and
// for a command, whose data are not known, there is nothing to check. FAILED_PRECONDITION: it takes more.
absl::Status CheckDataSuffices(const v1::JobSpec& job, const v1::RankProgress& progress, const v1::GroupsSpec& groups);

// Returns whether the job's present generation ends: the job is to have other groups, and all of the present ones have
// left, or are lost. What they had exchanged last is not known before the servers take nothing more of them.
bool GenerationIsEnding(const JobRecord& job);

// Returns how many times groups of the present generation were started, without the first start of each. The evaluation
// does not count.
uint64_t RestartsOf(const JobRecord& job);

// Returns the lowest incarnation of the generation that follows the present one. 1: no group was ever started.
uint32_t NextFirstIncarnation(const JobRecord& job);

// Returns for each group the last step of its generation that counts: all steps up to it are in the center, and the
// data of later ones are handed out again. `answers` are those of the job's servers, each with all groups of its shard,
// or without any if the server lost the shard and has no say.
//
// - The lowest step over the servers counts: from it the group would also go on if it were started again. Steps differ
//   if the group died in the middle of an exchange, or if a server went back to an older snapshot.
// - A server that knows no exchange of a group in this generation holds it at the generation's first step. Its shard
//   may be one of an earlier generation.
// - If no server has a say, the step counts that the group has reported.
// - A group that has finished had all that it reported on the servers' disks. A server that knows less of it has lost
//   its shard, and the group will not train again. So its reported step counts at least.
std::vector<uint64_t> LastSteps(const JobRecord& job, absl::Span<const v1::ClosedGeneration> answers);

// Ends the job's present generation, and begins that of `generations.wanted`. All of its groups wait then. The groups
// of a kind that were there before go on with the data that they had trained and with their own states, as far as they
// keep their numbers. If no group was ever started, the job just has other groups. `answers` are as in LastSteps.
// `wanted` is set, and no group is placed.
void BeginGeneration(JobRecord& job, absl::Span<const v1::ClosedGeneration> answers);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_NEXT_GENERATION_H_
