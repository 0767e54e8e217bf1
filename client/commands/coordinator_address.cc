#include "client/commands/coordinator_address.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "client/local_cluster/cluster_folder.h"
#include "wire/host_port.h"

namespace hooke {
absl::StatusOr<std::string> ChooseCoordinator(const CoordinatorChoice& choice) {
  std::string address = kDefaultCoordinator;
  std::string source = "the default";
  if (!choice.flag.empty()) {
    address = choice.flag;
    source = "--coordinator";
  } else if (!choice.environment.empty()) {
    address = choice.environment;
    source = "HOOKE_COORDINATOR";
  } else if (!choice.state_dir.empty()) {
    if (const std::optional<std::string> running = RunningClusterAddress(choice.state_dir); running.has_value()) {
      address = *running;
      source = absl::StrCat("the cluster in ", choice.state_dir);
    }
  }
  if (absl::Status status = CheckDialAddress(address); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", status.message()));
  }
  return address;
}

}  // namespace hooke
