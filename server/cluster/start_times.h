#ifndef HOOKE_SERVER_CLUSTER_START_TIMES_H_
#define HOOKE_SERVER_CLUSTER_START_TIMES_H_

// How long each part of the way took from a job's submission to the first steps of its groups. Pure. Workers, ranks and
// clients may state any times; those that cannot be are cut or dropped.
//
// A group's start goes through the coordinator (QUEUED, STORED), the lead's worker (PREPARED, FILES) and rank 0 (LOADED
// to FIRST_STEP). Workers and ranks say how long ago something began, so only the coordinator's clock counts. The span
// STORED is what lies between the placement and the time at which the worker says that it got the command.

#include <cstdint>
#include <string>
#include <vector>

#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"
#include "server/records/records.h"

namespace hooke {

// The longest time that a client, a worker or a rank may state, in microseconds: over a week.
constexpr uint64_t kStatedUsMax = 1000000000000;

struct StartBegin {
  uint32_t group = 0;
  uint32_t incarnation = 0;
  std::string worker;          // Of rank 0.
  std::string waited_for;      // Why the group waited; shortened here.
  int64_t waits_since_us = 0;  // Since 1970-01-01 UTC; 0: not known. Then there is no span QUEUED.
  int64_t placed_us = 0;
};

// Adds a start to those of a group. Of more than four, the first and the last three stay.
void AddStart(const StartBegin& begin, std::vector<PackedStart>& starts);

// The time of an event that came at `now_us` and says that it happened at `said_us`. It cannot have happened before the
// start was placed, nor in the future.
int64_t HappenedAt(int64_t said_us, int64_t now_us, const v1::StartTimes& start);

// Adds the worker's part, once the launcher has started at `at_us`. A second call changes nothing.
void AddPrepared(const v1::GroupStarted& started, int64_t at_us, v1::StartTimes& start);

// Adds the rank's part, which it reported at `at_us`. Returns whether it did: not a second time, nor if the report
// breaks a rule of proto/worker.proto.
bool AddBegun(const v1::RankBegun& begun, int64_t at_us, v1::StartTimes& start);

// The client's part of a submission that came at `submitted_us`: SUBMIT and UPLOAD, as far as they are known.
std::vector<v1::LifeSpan> SubmitSpans(int64_t submitted_us, uint64_t preparing_us, uint64_t upload_us);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_START_TIMES_H_
