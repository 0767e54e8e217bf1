#ifndef HOOKE_SERVER_CLUSTER_TALLY_H_
#define HOOKE_SERVER_CLUSTER_TALLY_H_

// Computes the groups that wait, the slots that a job takes and the room of a worker, as placement needs them. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "server/cluster/known.h"
#include "server/records/records.h"
#include "server/scheduling/avoidance.h"
#include "server/scheduling/placement.h"

namespace hooke {

// Returns the group as one that waits, and that may start now.
WaitingGroup WaitingGroupOf(const known::Job& job, uint32_t group);

known::Tally MakeTally(const known::Job& job);
// Returns the job's tally, which is made anew if the job's record has changed.
const known::Tally& TallyOf(known::Job& job);

// Returns the steady time at which the group is likely to end; nullopt if there is no estimate.
std::optional<absl::Duration> EndsAt(const known::Job& job, const GroupKey& key);

// Returns the worker as PlaceGroups sees it if all its slots are free.
FreeWorker WholeWorker(const known::Worker& worker);

// Returns why and until when the worker is avoided. Empty: it is not.
std::string AvoidedText(const known::Worker& worker, const AvoidOptions& options, Instant now);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_TALLY_H_
