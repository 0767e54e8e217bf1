#include "server/cluster/server_dial.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr absl::Duration kLongestPause = absl::Seconds(5);
constexpr absl::string_view kMend = "; give --advertise an address that workers reach";

}  // namespace

DialVerdict JudgeDial(const ServerClaim& claim, const DialAnswer& answer, const std::string& same_address) {
  using What = DialVerdict::What;
  const std::string begin = absl::StrCat("advertises ", claim.address);
  if (absl::IsUnauthenticated(answer.status)) {
    return {What::kMaybe, absl::StrCat(begin, ", where the coordinator is refused: ", answer.status.message())};
  }
  if (!answer.status.ok()) {
    const std::string also =
        same_address.empty() ? "" : absl::StrCat(". Server ", ShortId(same_address), " advertises the same address");
    return {What::kMaybe, absl::StrCat(begin, ", which the coordinator cannot reach: ", answer.status.message(),
                                       "; check --advertise", also)};
  }
  if (answer.server_id.empty()) {
    return {What::kElsewhere, absl::StrCat(begin, ", where something else answers", kMend)};
  }
  if (answer.server_id != claim.server_id) {
    if (answer.server_id == same_address) {
      return {What::kElsewhere, absl::StrCat(begin, ", but ", claim.address, " is also advertised by server ",
                                             ShortId(same_address), ", which answers there", kMend)};
    }
    return {What::kElsewhere,
            absl::StrCat(begin, ", but another server, ", ShortId(answer.server_id), ", answers there", kMend)};
  }
  if (answer.instance != claim.instance) {
    // The same server may also have started again a moment ago. Its next heartbeat will then show that.
    return {What::kMaybe, absl::StrCat(begin, ", but another server with the same identity answers there: one has a ",
                                       "copy of the other's --state-dir; stop it, and start it with an empty one")};
  }
  return {};
}

absl::Duration PauseAfterDials(uint32_t failures) {
  absl::Duration pause = kFirstPause;
  for (uint32_t i = 1; i < failures && pause < kLongestPause; ++i) pause *= 2;
  return std::min(pause, kLongestPause);
}

std::string ContestClaim(const ServerClaim& claim, const ServerClaim& known, bool known_lives,
                         const std::string& replaced_instance) {
  if (claim.instance == known.instance || !known_lives) return "";
  // A server that starts again at its address need not wait until the coordinator finds its previous process silent.
  if (claim.address == known.address && claim.instance != replaced_instance) return "";
  return absl::StrCat("advertises ", claim.address, ", but has the identity ", ShortId(claim.server_id),
                      " of a server that is alive at ", known.address, ": one has a copy of the other's --state-dir; ",
                      "stop it, and start it with an empty one. A server that was moved is taken some seconds after ",
                      "it was stopped at its old address");
}

std::string ShortId(const std::string& server_id) { return server_id.substr(0, 8); }

}  // namespace hooke
