#include "wire/grpc_status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hooke {
namespace {

// Parses gRPC's "Received message larger than max (SIZE vs. LIMIT)" into the size and the limit.
std::optional<std::pair<uint64_t, uint64_t>> TooLarge(absl::string_view message) {
  const size_t found = message.find("essage larger than max (");
  if (found == message.npos || !absl::ConsumeSuffix(&message, ")")) return std::nullopt;
  const std::vector<absl::string_view> numbers = absl::StrSplit(message.substr(message.rfind('(') + 1), " vs. ");
  uint64_t size = 0;
  uint64_t limit = 0;
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &size) || !absl::SimpleAtoi(numbers[1], &limit)) {
    return std::nullopt;
  }
  return std::make_pair(size, limit);
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  const int code = status.error_code();
  if (code == 0) return absl::OkStatus();
  if (code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    return absl::UnknownError(status.error_message());
  }
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
    if (const auto sizes = TooLarge(status.error_message()); sizes.has_value()) {
      // If the sender itself refused its message, no flag of the receiver helps.
      const bool sent = absl::StrContains(status.error_message(), "Sent");
      return absl::ResourceExhaustedError(
          absl::StrCat("a message of ", sizes->first, " bytes was refused, at most ", sizes->second, " are ",
                       sent ? "sent" : "taken: hooke-server takes more with --max-message-bytes"));
    }
  }
  absl::Status read(static_cast<absl::StatusCode>(code), status.error_message());
  if (!status.error_details().empty()) read.SetPayload(kStatusDetails, absl::Cord(status.error_details()));
  return read;
}

}  // namespace hooke
