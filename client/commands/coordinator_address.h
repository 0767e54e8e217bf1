#ifndef HOOKE_CLIENT_COMMANDS_COORDINATOR_ADDRESS_H_
#define HOOKE_CLIENT_COMMANDS_COORDINATOR_ADDRESS_H_

// Chooses the coordinator that a command talks to.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// The address where hooke-server listens by default.
constexpr char kDefaultCoordinator[] = "127.0.0.1:7411";

struct CoordinatorChoice {
  std::string flag;         // --coordinator; empty: not given.
  std::string environment;  // HOOKE_COORDINATOR; empty: not set.
  std::string state_dir;    // The folder where `hooke up` keeps the address of its cluster; empty: none.
};

struct ChosenCoordinator {
  std::string address;
  std::string source;       // Where the address comes from, for people: "--coordinator", "the default".
  bool by_default = false;  // The address is kDefaultCoordinator, because nobody has named another.
};

// Chooses the flag, else the environment, else the cluster that `hooke up` runs in state_dir, else kDefaultCoordinator.
// INVALID_ARGUMENT if the address is malformed; the message says where the address came from.
absl::StatusOr<ChosenCoordinator> ChooseCoordinatorAndSource(const CoordinatorChoice& choice);
absl::StatusOr<std::string> ChooseCoordinator(const CoordinatorChoice& choice);

}  // namespace hooke

#endif  // HOOKE_CLIENT_COMMANDS_COORDINATOR_ADDRESS_H_
