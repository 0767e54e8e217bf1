#include "wire/calls/connection_failure.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace hooke {

std::string ConnectionTrouble(const std::string& message) {
  for (const absl::string_view before : {"Failed to connect to remote host: ", "last error: "}) {
    const size_t found = message.rfind(before.data(), std::string::npos, before.size());
    if (found != std::string::npos) return message.substr(found + before.size());
  }
  return message;
}

bool IsConnectionFailure(absl::string_view message) {
  // gRPC uses the same code for its own failures and for a server's UNAVAILABLE. Only the words of the message tell
  // them apart.
  static constexpr absl::string_view kWords[] = {
      "failed to connect", "connection refused", "connection reset", "connection timed out",
      "socket closed",     "broken pipe",        "goaway",           "endpoint read",
      "transport closed",  "keepalive",          "ping timeout",     "dns resolution",
      "no route to host",  "network is unreach", "no answer within", "recvmsg",
      "sendmsg",           "server shutdown",    "stream removed",   "name resolution",
      "empty address",     "connect deadline",   "subchannel",       "connection attempt"};
  const std::string lower = absl::AsciiStrToLower(message);
  return message.empty() ||
         absl::c_any_of(kWords, [&](absl::string_view word) { return absl::StrContains(lower, word); });
}

}  // namespace hooke
