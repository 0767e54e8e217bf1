#ifndef HOOKE_SERVER_COORDINATOR_FAKE_SERVER_H_
#define HOOKE_SERVER_COORDINATOR_FAKE_SERVER_H_

// For tests: servers that send heartbeats and answer dials, without processes or sockets.

#include <string>

#include "clocks/instant.h"
#include "server/cluster/server_dial.h"
#include "server/coordinator/coordinator.h"

namespace hooke {

// Returns the heartbeat of a server that holds nothing. Its identity is "id of ADDRESS", with '-' for ':'.
v1::ServerHeartbeatRequest FakeServer(const std::string& address);

// Returns what the FakeServer at `address` answers to a dial.
DialAnswer FakeServerAnswers(const std::string& address);

// Answers each dial as if there were a FakeServer at each address.
void AnswerDials(Coordinator& coordinator, Instant now);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_FAKE_SERVER_H_
