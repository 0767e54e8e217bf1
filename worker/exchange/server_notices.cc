#include "worker/exchange/server_notices.h"

#include "absl/strings/str_cat.h"
#include "wire/utc_time.h"

namespace hooke {

std::vector<std::string> ServerNotices::Take(const std::vector<ServerOutcome>& outcomes, uint64_t step,
                                             absl::Time now) {
  std::vector<std::string> notices;
  for (const ServerOutcome& outcome : outcomes) {
    Server& server = servers_.try_emplace(outcome.address, Server{attached_, false}).first->second;
    if (outcome.status.ok()) {
      if (server.silent) {
        notices.push_back(absl::StrCat("server ", outcome.address, " answers again at step ", step,
                                       "; it had not since ", UtcText(server.answered)));
      }
      server = {now, false};
    } else if (!server.silent) {
      server.silent = true;
      notices.push_back(absl::StrCat("server ", outcome.address, " has not answered since ", UtcText(server.answered),
                                     "; at step ", step, "; training goes on (", outcome.status.message(), ")"));
    }
  }
  return notices;
}

}  // namespace hooke
