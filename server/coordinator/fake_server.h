#ifndef HOOKE_SERVER_COORDINATOR_FAKE_SERVER_H_
#define HOOKE_SERVER_COORDINATOR_FAKE_SERVER_H_

// For tests: servers that send heartbeats and answer dials, without processes or sockets.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clocks/instant.h"
#include "proto/coordinator.pb.h"
#include "server/cluster/server_dial.h"
#include "server/coordinator/coordinator.h"

namespace hooke {

// Returns the heartbeat of a server that holds nothing. Its identity is "id of ADDRESS", with '-' for ':'.
v1::ServerHeartbeatRequest FakeServer(const std::string& address);

// How far the groups of each job had come, by job id. A FakeServer reports this when it is told to end a generation of
// the job. For a job that is not in the map it reports no groups.
using FakeShards = std::map<std::string, std::vector<v1::ClosedGroup>>;

// Returns how far a group had come at a server. `incarnation` is the last start that exchanged there.
v1::ClosedGroup ClosedAt(uint32_t group, uint32_t incarnation, uint64_t step);

// Sends a heartbeat of the FakeServer at `address`. If the answer names generations that end, sends another one that
// says how far the groups had come. Returns the last answer.
absl::StatusOr<v1::ServerHeartbeatResponse> FakeHeartbeat(Coordinator& coordinator, const std::string& address,
                                                          Instant now, const FakeShards& shards = {});

// Returns what the FakeServer at `address` answers to a dial.
DialAnswer FakeServerAnswers(const std::string& address);

// Answers each dial as if there were a FakeServer at each address.
void AnswerDials(Coordinator& coordinator, Instant now);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_FAKE_SERVER_H_
