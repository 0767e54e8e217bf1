#include "worker/report/want_of_server.h"

#include "absl/strings/cord.h"

namespace hooke {
namespace {

constexpr absl::string_view kMark = "hooke/want-of-server";
constexpr absl::string_view kSaidMark = "hooke/said-by-server";

}  // namespace

absl::Status ForWantOf(absl::string_view address, absl::Status status) {
  if (address.empty() || !(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status))) return status;
  status.SetPayload(kMark, absl::Cord(address));
  return status;
}

absl::Status SaidByServer(absl::Status status) {
  if (absl::IsUnavailable(status)) status.SetPayload(kSaidMark, absl::Cord("yes"));
  return status;
}

bool IsSaidByServer(const absl::Status& status) { return status.GetPayload(kSaidMark).has_value(); }

std::string WantedServer(const absl::Status& status) {
  const absl::optional<absl::Cord> address = status.GetPayload(kMark);
  return address.has_value() ? std::string(*address) : "";
}

}  // namespace hooke
