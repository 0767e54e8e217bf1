#ifndef HOOKE_WORKER_EXCHANGE_SERVER_NOTICES_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_NOTICES_H_

// Makes notices for people about servers that stop answering and come back. There is one notice at each change, not one
// at each exchange. Pure.

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/exchange/exchange_client.h"

namespace hooke {

class ServerNotices {
 public:
  // `now` is when the group attached; at that time all servers answered. All times of this class are those of the
  // machine's clock.
  explicit ServerNotices(absl::Time now) : attached_(now) {}

  // Takes the outcomes of the exchange at `step`, which ended at `now`. Returns a notice for each server that changed.
  std::vector<std::string> Take(const std::vector<ServerOutcome>& outcomes, uint64_t step, absl::Time now);

 private:
  struct Server {
    absl::Time answered;
    bool silent = false;
  };

  const absl::Time attached_;
  std::map<std::string, Server> servers_;  // Keyed by address.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_NOTICES_H_
