#ifndef HOOKE_SERVER_COORDINATOR_SERVER_DIAL_H_
#define HOOKE_SERVER_COORDINATOR_SERVER_DIAL_H_

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

// The answer of whoever is at the address.
struct DialAnswer {
  absl::Status status;    // The rest is set if it is OK. Its message is for people.
  std::string server_id;  // Empty: it is no server that a coordinator could know.
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
    kMaybe,      // It cannot be reached, which may pass: only a second time in a row is it taken for true.
    kElsewhere,  // Another server is at the address.
  } what = What::kReached;
  // Set unless it is reached: why nothing can be placed on the server, to go on "server X " or "this server ".
  std::string problem;
};

// Judges the answer to a dial of `claim.address`. `same_address`: the identity of another live server that advertises
// that address; empty: none does.
DialVerdict JudgeDial(const ServerClaim& claim, const DialAnswer& answer, const std::string& same_address);

// Pause after so many failed dials in a row, >= 1.
absl::Duration PauseAfterDials(uint32_t failures);

// Why may a process not speak for a server at all? Its identity is spoken for by `known`, which is another process, and
// which lives if `known_lives`. Empty: it may.
std::string ContestClaim(const ServerClaim& claim, const ServerClaim& known, bool known_lives,
                         const std::string& replaced_instance);

// The first characters of an identity, which are enough for people.
std::string ShortId(const std::string& server_id);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_SERVER_DIAL_H_
