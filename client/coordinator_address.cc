#include "client/coordinator_address.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cluster_folder.h"

namespace hooke {
namespace {

bool IsHost(absl::string_view host) {
  const bool ipv6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (ipv6) {
    return absl::c_all_of(host.substr(1, host.size() - 2),
                          [](char c) { return absl::ascii_isxdigit(c) || c == ':' || c == '.'; });
  }
  return !host.empty() &&
         absl::c_all_of(host, [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_'; });
}

}  // namespace

absl::Status CheckHostPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon != absl::string_view::npos && IsHost(address.substr(0, colon)) &&
      absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 1 && port <= 65535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::Utf8SafeCEscape(address), "\" is not HOST:PORT, for example ", kDefaultCoordinator));
}

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
  if (absl::Status status = CheckHostPort(address); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": ", status.message()));
  }
  return address;
}

}  // namespace hooke
