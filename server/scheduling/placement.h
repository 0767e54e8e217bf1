#ifndef HOOKE_SERVER_SCHEDULING_PLACEMENT_H_
#define HOOKE_SERVER_SCHEDULING_PLACEMENT_H_

// Which waiting group starts on which worker or workers? Pure functions of plain values: they know no clock, threads or
// messages.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "clocks/instant.h"

namespace hooke {

// A group that takes slots of a worker.
struct Occupant {
  std::string job_id;  // Empty: a job that nobody knows.
  uint32_t ranks = 0;
  std::optional<absl::Duration> ends_at;  // Steady; an estimate. nullopt: there is none, and it may end at any time.
};

struct FreeWorker {
  std::string name;
  std::string site;
  uint32_t slots = 0;
  uint32_t free = 0;  // <= slots.
  bool allows_commands = false;
  // The IP address at which the site's other nodes reach this worker. Empty: the worker takes no part in groups of
  // several workers.
  std::string address = {};
  std::string mpi = {};  // The MPI library of its ranks, and its version.
  // The groups on its other slots. Slots that are neither free nor an occupant's may become free at any time.
  std::vector<Occupant> occupants = {};
  bool drained = false;       // It gets no groups.
  bool avoided = false;       // It gets a group only if no other worker has room for the group.
  std::string only_job = {};  // It gets only groups of this job; empty: of any job.
  uint32_t gpus = 0;          // They are divided equally among its slots.
  std::string version = {};   // Of Hooke. The ranks of a group send one another what only one version knows.
  bool ends = false;          // It is drained because it ends by itself; for texts only.
};

struct WaitingGroup {
  std::string job_id;
  uint32_t group = 0;
  uint32_t ranks = 1;
  std::string site;           // The only site where it may run; empty: any site.
  bool due = true;            // False: the group waits for the time of its next try. Slots are kept for it.
  std::string wait_why = {};  // The reason to show if it is not due.
  bool command = false;       // True: only a worker that allows commands may run it.
  // Names of workers on which the group was slow. They are as FreeWorker::avoided for it.
  std::set<std::string> unwanted = {};
  std::string owner = {};
  uint32_t gpus_per_rank = 0;  // Only a worker that has so many GPUs for each slot may run it.
};

// How many slots an owner of jobs uses, and may use.
struct Quota {
  uint64_t used = 0;   // Slots that its groups take.
  uint64_t limit = 0;  // The most slots that they may take at once.
};
using Quotas = std::map<std::string, Quota>;  // By owner. Others have no limit.

// Returns why the group must not start because of its owner's quota. Empty: it may. `closed` has the owners of groups
// ahead that wait for that reason. If this group must wait, its owner is added, unless the group alone is larger than
// the quota.
std::string OverQuota(const WaitingGroup& group, const Quotas& quotas, std::set<std::string>& closed);

struct PlacedPart {
  std::string worker;
  uint32_t ranks = 0;
};

struct Placement {
  std::vector<PlacedPart> parts;  // In order of ranks, the lead first. Empty: the group waits.
  std::string site;
  std::string reason;        // Always set.
  bool lacks_slots = false;  // The group waits because there is no room for it.
};

class Rooms;  // server/scheduling/room.h

// Places the groups of `queue`, in which those that come first are ahead of the others. The result has one entry for
// each of its groups. Afterwards `rooms` are as they were: the caller puts in what starts. Wall time is only for times
// in reasons.
//
// If a worker has room for all ranks of a group, the group goes to one worker. It is the one with the fewest free slots
// that are enough (best fit; ties by name). Otherwise it goes to several workers of one site, which together take all
// its ranks. It takes as few workers as possible and spreads its ranks over them as evenly as their slots allow. The
// worker with the most ranks leads. Workers can share a group if they have the same MPI library, the same version of
// Hooke and different addresses. MPI tells nodes apart by their addresses. An avoided worker is taken only if the
// others have no room, and so is one that the group does not want.
//
// Backfill: a group may start although groups ahead of it wait. Nobody knows how long it will run, so it must not take
// a slot that a group ahead may need first. A group that must wait therefore keeps later groups off some workers. These
// are all workers on which it could start no later than it will start at the latest, by the estimates (Occupant). If
// it is not known when it will start, these are all workers that are large enough for it. If none is, it keeps later
// groups off the workers that are large enough together. So no group behind it delays its start on one worker, as far
// as is known, and small groups cannot overtake a large one forever. A group for which one worker is large enough keeps
// nobody off several workers that would have room for it together sooner.
//
// A group waits if it would take more slots than its owner has left. It then keeps nobody off any worker. Later groups
// of that owner wait, too, unless the group alone is larger than the quota.
std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup* const> queue, Rooms& rooms, Instant now,
                                   Quotas quotas = {});
// Does the same for a few groups, with rooms made anew from `workers`. The steady time is 0.
std::vector<Placement> PlaceGroups(absl::Span<const WaitingGroup> queue, std::vector<FreeWorker> workers,
                                   absl::Time now, Quotas quotas = {});

// Workers that can run a group together. The pointers are the caller's.
using WorkerSet = std::vector<const FreeWorker*>;

// Returns one set of workers for each site, MPI library and version of Hooke, in this order. All workers of a set have
// different addresses. Of several workers at an address, only the one with the most free slots is in a set. A worker
// without an address is in none.
std::vector<WorkerSet> WorkersTogether(const WorkerSet& workers);

// Returns the sum of the workers' `slots`, which is a member such as &FreeWorker::free.
uint64_t SumOf(const WorkerSet& workers, uint32_t FreeWorker::*slots);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_PLACEMENT_H_
