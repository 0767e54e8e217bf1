#ifndef HOOKE_WORKER_DAEMON_GROUP_PART_H_
#define HOOKE_WORKER_DAEMON_GROUP_PART_H_

// The part of a group that this worker runs. It has all the group's ranks, or some of them if the group runs on several
// workers. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/coordinator.pb.h"
#include "worker/daemon/rank_watch.h"
#include "worker/launch/launch_command.h"

namespace hooke {

struct PartHere {
  uint32_t first_rank = 0;
  uint32_t ranks = 0;
  bool alone = true;  // Whether the part is the whole group.
  bool leads = true;  // Whether mpirun runs on this worker.
};

PartHere PartOf(const v1::StartGroupCommand& start);

// Returns all nodes of the group, for mpirun; empty if the whole group runs on this worker.
std::vector<LaunchHost> HostsOf(const v1::StartGroupCommand& start);

// Returns the ranks that run on other workers.
std::vector<RanksElsewhere> ElsewhereOf(const v1::StartGroupCommand& start);

// Returns the job, the group and the incarnation of `start`.
v1::GroupId IdOf(const v1::GroupStart& start);

// Returns "<job>-<group>-<incarnation>".
std::string GroupName(const v1::GroupId& group);

// Returns OK if this worker can obey the command. Otherwise returns INVALID_ARGUMENT, RESOURCE_EXHAUSTED or
// FAILED_PRECONDITION, with what is allowed. `allow_commands` is WorkerOptions::allow_commands.
absl::Status CheckStartGroup(const v1::StartGroupCommand& start, uint32_t slots, bool allow_commands);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_GROUP_PART_H_
