#ifndef HOOKE_SERVER_SCHEDULING_QUEUE_TEXT_H_
#define HOOKE_SERVER_SCHEDULING_QUEUE_TEXT_H_

// Why a group or a job waits, in words for people. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "clocks/instant.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/room.h"

namespace hooke {

// Returns why no room has slots for the group. Example: "needs 8 slots at hpc; 4 free on w1; 4 more when mnist-3 ends,
// about 2026-11-22T14:20:00Z". The rooms are as the groups ahead have left them. A time is there only if each end that
// the group waits for has an estimate. It is rounded, because estimates change all the time.
std::string WhyItWaits(const WaitingGroup& group, const Rooms& rooms, Instant now);

// Returns why the group waits for the quota of its owner: "needs 4 slots; anna uses 6 of 8 slots".
std::string QuotaText(const WaitingGroup& group, uint64_t used, uint64_t limit);

// Returns the reason of a job of which no group runs, with its place in the queue: "2nd in the queue; needs ...".
std::string QueuedText(uint32_t position, absl::string_view reason);

// Returns "2 GPUs each".
std::string GpusText(uint32_t gpus_per_rank);

// Returns part of a sentence, such as ", and the 3 workers that site a has for groups of several workers have 6
// together". `slots` are counted as in SumOf. `set` has at least one worker.
std::string TogetherText(const WorkerSet& set, uint32_t FreeWorker::*slots);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_QUEUE_TEXT_H_
