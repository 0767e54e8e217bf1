#ifndef HOOKE_WORKER_EXCHANGE_SERVER_NOTICES_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_NOTICES_H_

// What a person should read about servers that stop answering and come back: one notice at each change, not one at each
// exchange. Pure.

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/exchange/exchange.h"

namespace hooke {

class ServerNotices {
 public:
  // `now`: when the group attached, so when all servers answered.
  explicit ServerNotices(absl::Time now) : attached_(now) {}

  // The outcomes of the exchange at `step`, which ended at `now`. Returns what changed.
  std::vector<std::string> Take(const std::vector<ServerOutcome>& outcomes, uint64_t step, absl::Time now);

 private:
  struct Server {
    absl::Time answered;
    bool silent = false;
  };

  const absl::Time attached_;
  std::map<std::string, Server> servers_;  // By address.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_NOTICES_H_
