#ifndef HOOKE_SERVER_CLUSTER_CLUSTER_FIGURES_H_
#define HOOKE_SERVER_CLUSTER_CLUSTER_FIGURES_H_

// Figures of a cluster as the coordinator sees it, as plain values for people. Unlike a list of jobs, they are cheap to
// make: they hold no job specs, and their size is bounded.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"

namespace hooke {

struct FigureLimits {
  size_t jobs_max = 200;
  size_t groups_max = 1024;  // Of all jobs together.
  size_t workers_max = 1024;
  // An ended job is listed for so long, so that whoever looks now and then sees its last figures.
  absl::Duration keep_ended = absl::Minutes(5);
};

struct GroupFigures {
  uint32_t group = 0;
  bool placed = false;          // It starts or runs.
  uint32_t starts = 0;          // GroupStatus.incarnation.
  uint32_t silences = 0;        // Ranks, workers and servers that do not answer the group.
  uint32_t absent_servers = 0;  // Servers that some rank's exchanges skip.
  // Rank 0's last report of this incarnation, without its lists. nullopt: it has not reported yet.
  std::optional<v1::RankProgress> progress;
};

struct JobFigures {
  std::string job_id;
  v1::JobState state = v1::JOB_STATE_QUEUED;
  absl::Duration queued;                      // How long it has waited since its submission; 0 unless it is queued.
  uint64_t step = 0;                          // The highest step that any of its groups has reached in any start.
  uint64_t restarts = 0;                      // Starts of its groups, without the first of each in a generation.
  std::optional<v1::CenterEvaluated> center;  // The last evaluation.
  std::vector<GroupFigures> groups;           // Those that train, by index.
};

struct WorkerFigures {
  std::string name;
  std::string site;
  uint32_t slots = 0;
  uint32_t slots_used = 0;
  bool alive = false;
  absl::Duration unheard;  // Since it was last heard.
};

struct ServerFigures {
  std::string address;
  std::string id;  // Its identity.
  bool alive = false;
  bool usable = false;  // The coordinator has reached it at its address.
  absl::Duration unheard;
};

struct ClusterFigures {
  std::map<v1::JobState, uint64_t> jobs;      // Of all jobs that are known; each state is there.
  std::map<v1::GroupState, uint64_t> groups;  // Of jobs that have not ended; each state is there.
  uint64_t workers_alive = 0;
  uint64_t workers_silent = 0;
  uint64_t slots_used = 0;  // Slots of live workers on which ranks run.
  uint64_t slots_free = 0;
  std::vector<JobFigures> listed_jobs;  // Running ones first, then queued ones, then those that have just ended.
  std::vector<WorkerFigures> workers;   // By name.
  std::vector<ServerFigures> servers;   // By address. Not those that were refused.
  // How many jobs, groups and workers are missing from the lists above because of FigureLimits.
  uint64_t jobs_left_out = 0;
  uint64_t groups_left_out = 0;
  uint64_t workers_left_out = 0;
};

// Figures of the coordinator beside those of its cluster.
struct CoordinatorFigures {
  ClusterFigures cluster;
  uint64_t store_failures = 0;  // Attempts to store changes that failed.
  bool store_works = true;      // The last attempt succeeded.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_CLUSTER_FIGURES_H_
