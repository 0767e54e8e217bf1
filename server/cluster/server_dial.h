#ifndef HOOKE_SERVER_CLUSTER_SERVER_DIAL_H_
#define HOOKE_SERVER_CLUSTER_SERVER_DIAL_H_

// Judges a server's claim to be at an address. Before the coordinator places anything on a server, it dials the address
// that the server advertises and asks who is there. Pure functions of plain values.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hooke {

// A dial that is to be made.
struct ServerDial {
  std::string server_id;
  std::string address;
  uint64_t number = 0;  // >= 1. The coordinator ignores the answers to earlier dials of this server.
};

// What answered at the address, or why nothing did.
struct DialAnswer {
  absl::Status status;    // The other fields are set if this is OK. Its message is for people.
  std::string server_id;  // Empty: the process that answered is no server with an identity.
  std::string instance;
};

// A server as its heartbeats describe it.
struct ServerClaim {
  std::string server_id;
  std::string instance;
  std::string address;
};

struct DialVerdict {
  enum class What {
    kReached,
    kMaybe,  // The server cannot be reached, which may pass. After a kReached, only a second failure in a row counts.
    kElsewhere,  // Another server is at the address.
  } what = What::kReached;
  // Set unless `what` is kReached. Says why nothing can be placed on the server, as words that follow "server X " or
  // "this server ".
  std::string problem;
};

// Judges the answer to a dial of `claim.address`. `same_address` is the identity of another live server that advertises
// that address. It is empty if there is none.
DialVerdict JudgeDial(const ServerClaim& claim, const DialAnswer& answer, const std::string& same_address);

// Returns the pause before the next dial, after `failures` >= 1 failed dials in a row.
absl::Duration PauseAfterDials(uint32_t failures);

// Returns why the process of `claim` may not speak for the server of that identity; empty: it may. `known` is the last
// accepted claim of that identity. The process that made it still lives if `known_lives`. `replaced_instance` is the
// process that `known` replaced.
std::string ContestClaim(const ServerClaim& claim, const ServerClaim& known, bool known_lives,
                         const std::string& replaced_instance);

// Returns the first characters of an identity, which are enough for people.
std::string ShortId(const std::string& server_id);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_SERVER_DIAL_H_
