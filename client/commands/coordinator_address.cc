#include "client/commands/coordinator_address.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/local_cluster/cluster_folder.h"
#include "wire/host_port.h"

namespace hooke {

absl::StatusOr<ChosenCoordinator> ChooseCoordinatorAndSource(const CoordinatorChoice& choice) {
  std::string address = kDefaultCoordinator;
  std::string source = "the default";
  bool by_default = true;
  if (!choice.flag.empty()) {
    address = choice.flag;
    source = "--coordinator";
    by_default = false;
  } else if (!choice.environment.empty()) {
    address = choice.environment;
    source = "HOOKE_COORDINATOR";
    by_default = false;
  } else if (!choice.state_dir.empty()) {
    if (const std::optional<std::string> running = RunningClusterAddress(choice.state_dir); running.has_value()) {
      address = *running;
      source = absl::StrCat("the cluster in ", choice.state_dir);
      by_default = false;
    }
  }
  if (absl::Status status = CheckDialAddress(address); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", status.message()));
  }
  return ChosenCoordinator{std::move(address), std::move(source), by_default};
}

absl::StatusOr<std::string> ChooseCoordinator(const CoordinatorChoice& choice) {
  absl::StatusOr<ChosenCoordinator> chosen = ChooseCoordinatorAndSource(choice);
  if (!chosen.ok()) return chosen.status();
  return std::move(chosen->address);
}

}  // namespace hooke
