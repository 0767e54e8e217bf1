#ifndef HOOKE_JOB_GROUP_KINDS_H_
#define HOOKE_JOB_GROUP_KINDS_H_

// The groups of a job, which may be of several kinds (GroupsSpec.kinds): each kind has a size, a site and a batch size.
// Pure. Except for FillKinds and CheckKinds, the functions here need a job with its defaults (FillDefaults).

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "job/job_problem.h"
#include "proto/job.pb.h"

namespace hooke {

constexpr int kKindsMax = 64;

// Returns whether the coordinator may change the number of the kind's groups by itself.
inline bool HasLimits(const v1::GroupKind& kind) { return kind.min() > 0 || kind.max() > 0; }

inline bool HasKinds(const v1::JobSpec& job) { return job.groups().kinds_size() > 0; }

// Fills in the defaults of all kinds, and GroupsSpec's count and ranks, which follow from them.
void FillKinds(v1::JobSpec& job);

// Returns what is wrong with the kinds, after FillKinds. Each problem has the key "groups". Some messages
// name a kind by its place in the list, from 1.
std::vector<JobProblem> CheckKinds(const v1::JobSpec& job);

// Returns the kinds in order. If all groups are alike, there is one, made of `groups` and train.batch_size.
std::vector<v1::GroupKind> KindsOf(const v1::JobSpec& job);

// Returns the kind of group `group`. The group that evaluates, groups.count, is of the kind with the fewest ranks.
v1::GroupKind KindOf(const v1::JobSpec& job, uint32_t group);

// Returns the index of that kind in KindsOf.
size_t KindIndexOf(const v1::JobSpec& job, uint32_t group);

// Returns the number of ranks of all groups together.
uint64_t AllRanksOf(const v1::JobSpec& job);

// Returns the number of ranks of all groups below `group` together.
uint64_t RanksBefore(const v1::JobSpec& job, uint32_t group);

// Returns the number of ranks of the smallest group.
uint32_t FewestRanks(const v1::JobSpec& job);

// Returns for each group the number of samples that it trains in a step. A program has a batch size of its own, which
// is taken to be the same on all ranks. So its ranks count as one sample each.
std::vector<uint64_t> SamplesOfGroups(const v1::JobSpec& job);

// Returns the groups for people: "2 groups x 2 ranks", or "1 group x 4 ranks at hpc, 2 groups x 1 rank at cloud". A
// kind's batch size is named where it differs from train.batch_size.
std::string GroupsText(const v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_JOB_GROUP_KINDS_H_
