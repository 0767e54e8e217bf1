#ifndef HOOKE_CLIENT_COMMANDS_COORDINATOR_ADDRESS_H_
#define HOOKE_CLIENT_COMMANDS_COORDINATOR_ADDRESS_H_

// Where a command finds the coordinator. Used by main.cc.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Where hooke-server listens unless told otherwise.
constexpr char kDefaultCoordinator[] = "127.0.0.1:7411";

struct CoordinatorChoice {
  std::string flag;         // --coordinator; empty: not given.
  std::string environment;  // HOOKE_COORDINATOR; empty: not set.
  std::string state_dir;    // Where `hooke up` leaves the address of a cluster that runs; empty: nowhere.
};

// The flag, else the environment, else the cluster that `hooke up` runs from state_dir, else kDefaultCoordinator.
// INVALID_ARGUMENT, naming its source, for an address that is malformed.
absl::StatusOr<std::string> ChooseCoordinator(const CoordinatorChoice& choice);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COORDINATOR_ADDRESS_H_
