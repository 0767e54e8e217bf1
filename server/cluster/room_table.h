#ifndef HOOKE_SERVER_CLUSTER_ROOM_TABLE_H_
#define HOOKE_SERVER_CLUSTER_ROOM_TABLE_H_

// The free slots of each worker that can run groups. A large cluster has tens of thousands of workers, of which few
// change between two placements. So rooms are kept, and computed anew only if they have changed.

#include <set>
#include <string>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "server/cluster/deadlines.h"
#include "server/cluster/job_table.h"
#include "server/cluster/known.h"
#include "server/cluster/worker_table.h"
#include "server/records/records.h"
#include "server/scheduling/avoidance.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/room.h"

namespace hooke {

class RoomTable {
 public:
  // A worker that was not heard for `silent_after` has no room.
  RoomTable(absl::Duration silent_after, AvoidOptions avoid) : silent_after_(silent_after), avoid_(avoid) {}

  // Notes that the worker's room is not what Refresh computed.
  void Changed(const std::string& worker) { changed_.insert(worker); }
  // Notes that the rooms of the group's workers have changed, because its estimate has.
  void Changed(const GroupRecord& group) {
    for (const GroupPart& part : group.parts) changed_.insert(part.worker);
  }

  // Computes anew the rooms that have changed, and returns all.
  Rooms& Refresh(WorkerTable& workers, const JobTable& jobs, Instant now);
  // Returns the rooms as the last Refresh left them.
  const Rooms& rooms() const { return rooms_; }

  // Ends the process if a room that is kept, or the tally of a job, is not what it would be if it were computed now.
  void CheckAllKept(const WorkerTable& workers, const JobTable& jobs, Instant now) const;

 private:
  FreeWorker RoomOf(const known::Worker& worker, const JobTable& jobs, Instant now) const;

  absl::Duration silent_after_;
  AvoidOptions avoid_;
  Rooms rooms_;                    // The entries of `changed_` are out of date.
  std::set<std::string> changed_;  // Names of workers.
  // When a worker's room must be computed anew although nothing came from the worker: it may become silent, or be
  // avoided no longer.
  Deadlines<std::string> due_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_ROOM_TABLE_H_
