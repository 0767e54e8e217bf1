#ifndef HOOKE_SERVER_CLUSTER_KNOWN_H_
#define HOOKE_SERVER_CLUSTER_KNOWN_H_

// The values in which ClusterState keeps jobs, groups, workers, servers and sites: their records, and what comes from
// reports and is not stored. They are plain; only ClusterState changes them.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clocks/instant.h"
#include "proto/coordinator.pb.h"
#include "server/cluster/choose_servers.h"
#include "server/cluster/effects.h"
#include "server/cluster/lifecycle.h"
#include "server/cluster/server_dial.h"
#include "server/history/staleness.h"
#include "server/records/records.h"
#include "server/scheduling/avoidance.h"
#include "server/scheduling/group_count.h"
#include "server/scheduling/placement.h"
#include "server/scheduling/straggler.h"

namespace hooke::known {

// Limit for the number of workers. Servers, and sites with an agent, have limits of the same size.
constexpr size_t kNodesMax = 16384;

// A group that waits because its worker was lost. Its last start may still run there: nobody has said that it ended.
struct CutOff {
  GroupRecord before;       // The group's record when its worker was lost.
  absl::Duration retry_at;  // LiveGroup::retry_at as it would be if the group did not wait for its worker.
  std::string site;         // The lost worker's site, kept here because the worker itself may be forgotten meanwhile.
  // The group has used its one wait: another worker came back, and the group waited a moment for its own.
  bool awaited = false;
};

// The part of a group's state that comes from reports and is not stored.
struct LiveGroup {
  v1::RankProgress progress;  // Rank 0's last progress in this incarnation.
  bool has_progress = false;
  // The job's servers that a rank of this incarnation misses, by rank.
  std::map<uint32_t, std::vector<v1::AbsentServer>> absent;
  uint64_t furthest_step = 0;    // The highest step over all incarnations.
  bool lacks_server = false;     // A rank of this incarnation gave up because of a server.
  uint32_t server_failures = 0;  // Ends in a row because of a server, without a new step between them.
  // Steady times of this incarnation's first and last report that it works. `last_work` has no meaning while
  // `first_work` is unset.
  std::optional<absl::Duration> first_work;
  uint64_t first_work_step = 0;  // The step of the first of these reports.
  absl::Duration last_work;
  int64_t waits_since_us = 0;  // Since 1970-01-01 UTC: when it was first seen to wait for its next start; 0: not yet.
  absl::Duration retry_at = -absl::InfiniteDuration();  // Steady time before which the group does not start again.
  std::optional<CutOff> cut_off;                        // Set only while the group waits.
  std::vector<v1::Silence> silences;
  // Set once this incarnation was told to stop so that it starts elsewhere: the reason. Its end is then no failure.
  std::string leaves;
  std::string leaves_for;  // The id of the job for which this incarnation was told to leave; empty: for none.
  // Why the group left if that was for a job of higher priority. It is shown until the group starts again.
  std::string made_room;
  std::deque<std::string> last_lines;  // The last lines that this incarnation printed; at most kLastLinesMax.
  StepWork work;                       // The work of this start's steps, which shows whether the group is a straggler.
  // A counter from 0 to StragglerOptions::windows: each slow measurement of `work` adds 1, each other one takes 1 away.
  uint32_t slow_windows = 0;
  std::string slow;  // Why this incarnation is a straggler; empty: it is none.
  // The workers that the group left as a straggler, how often it did, and the steady time from which it may do so
  // again.
  std::set<std::string> unwanted;
  uint32_t moves = 0;
  absl::Duration moves_from = -absl::InfiniteDuration();

  // ---- Used only for groups that run on several workers.
  std::set<std::string> ready;  // The workers whose part of this incarnation is ready to be launched.
  bool launched = false;        // All parts were ready. The lead was told to start mpirun, or it was gone.
  // Steady time at which the start is given up if a part is not ready by then.
  absl::Duration ready_by = absl::InfiniteDuration();
  // The worker of the first rank of this incarnation that reported a failure. Empty: no rank reported one.
  std::string failed_on;
  // Set if a part has failed, but another part may know the cause. The group ends when that other part has failed
  // too, or at `outcome_due`.
  std::optional<GroupOutcome> outcome_so_far;
  absl::Duration outcome_due;  // Steady.
};

// Sums and lists over a job's groups that every placement needs. They are made anew after the record has changed.
struct Tally {
  bool fresh = false;
  uint64_t placed_slots = 0;  // The slots that its placed groups take.
  uint64_t waiting_slots = 0;
  std::vector<WaitingGroup> waiting;  // `due` and `wait_why` are those of the last placement.
  size_t spec_bytes = 0;
  bool has_limits = false;  // HasLimits of any kind of its groups.
};

struct Job {
  JobRecord record;
  Tally tally;
  std::vector<LiveGroup> live;  // One for each of record.groups.
  std::deque<v1::Notice> notices;
  Staleness staleness;                                      // Of the groups, from their reports.
  std::optional<v1::Notice> setback;                        // The last notice that came with RankNotice.setback.
  absl::Duration ended_at;                                  // Steady; set if the job has ended.
  absl::Duration steps_stored = -absl::InfiniteDuration();  // Steady: when NoteExchanged stored the job last.
  // While the generation ends (GenerationIsEnding): what the job's servers have answered, by KeyOf(JobServer).
  std::map<std::string, v1::ClosedGeneration> closed;
  // Groups of it ran and left so that their number could change, and none has started since. The job keeps its place
  // before those that wait.
  bool goes_on = false;
  std::vector<KindWatch> watch;                           // By kind of its groups.
  absl::Duration resized_at = -absl::InfiniteDuration();  // Steady: when the number of its groups changed last.
  uint32_t queue_position = 0;                            // From 1; has a meaning only while the job is QUEUED.
  uint64_t earlier_restarts = 0;  // RestartsOf of the generations that ended since the coordinator was started.
  uint64_t changes = 1;  // JobTable::last_change at its last change; 1: none since the coordinator was started.
};

struct Worker {
  std::string name;
  std::string instance;
  std::string site;
  std::string version;
  uint32_t slots = 0;  // 0: the worker has not said hello, and is known only from stored groups.
  bool allows_commands = false;
  uint32_t gpus = 0;
  std::string address;  // WorkerHello.address.
  std::string mpi;      // WorkerHello.mpi.
  std::vector<v1::NodeInterface> interfaces;
  std::string only_job;  // WorkerHello.only_job.
  SessionId session = 0;
  Instant last_heard;
  bool silent = false;  // Users were told that the worker does not answer.
  bool lost = false;    // Its lease has run out.
  v1::Drain drain = v1::DRAIN_NONE;
  bool ends = false;         // It has said that it is about to end.
  std::deque<Death> deaths;  // The last ones of groups on it.
  // The groups that it may be running, each with the slots that it takes. A group that it was told to stop stays here
  // until its end.
  std::map<GroupKey, uint32_t> occupants;
  // Groups placed on this worker that its hello did not name. They are lost unless their end arrives before the
  // worker's next heartbeat.
  std::set<GroupKey> unconfirmed;
  bool has_room = false;  // RoomTable has an entry for this worker.

  bool gets_groups() const { return drain == v1::DRAIN_NONE && !ends; }
  // The slots that its occupants take. A worker may say that it runs more than it has room for.
  uint64_t slots_used() const {
    uint64_t used = 0;
    for (const auto& [group, ranks] : occupants) used += ranks;
    return used;
  }
};

struct Server {
  bool heard = false;  // False: only known from stored jobs.
  ServerClaim claim;   // Of its last heartbeat; if not heard, only the address is set.
  // The instance of the server's previous process, which the present process replaced. While the present process
  // lives, the previous one is refused.
  std::string replaced_instance;
  LiveServer::Reach reach = LiveServer::Reach::kBeingDialed;
  std::string problem;                                 // If `reach` is kFailed: the problem.
  uint64_t dial = 0;                                   // The number of the dial under way; 0: no dial is under way.
  absl::Duration dial_at = -absl::InfiniteDuration();  // Steady time of the next dial.
  uint32_t dial_failures = 0;                          // Failed dials in a row.
  std::string version;
  uint64_t center_bytes = 0;
  uint32_t centers = 0;       // Number of centers in memory.
  uint32_t disk_centers = 0;  // Number of centers that are on disk only.
  uint64_t disk_bytes = 0;
  double cores = 0;  // Cores that its process keeps busy.
  v1::ExchangeFigures exchanges;
  double snapshot_age_seconds = 0;
  // The jobs whose shards are on the server's disk only. The value is the shard's bytes.
  std::map<std::string, uint64_t> disk_jobs;
  // Jobs that the server holds and the coordinator does not know, as last logged.
  std::set<std::string> strangers;
  Instant last_heard;
  bool silent = false;
  bool lost = false;  // Silent for a lease: another server may take its place in jobs.
};

// A process that may not speak for the server whose identity it has.
struct RefusedServer {
  ServerClaim claim;
  std::string version;
  std::string problem;
  Instant last_heard;
};

}  // namespace hooke::known

#endif  // HOOKE_SERVER_CLUSTER_KNOWN_H_
