#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_

// Decides when an exchange with a server is given up. Pure.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace hooke {

// How long a server may take.
struct ExchangePatience {
  // Longest time from the start of the exchange to an answer, and from each answer to the next. So a slow link may take
  // long, however much is exchanged, as long as answers come.
  absl::Duration silence;
  absl::Duration first;  // Time for the first answer, if the server failed the previous exchange.
  absl::Duration whole = absl::InfiniteDuration();  // Time for the whole exchange.
  // Skip a server that is known to be away (server_presence.h), which costs no time.
  bool skips_absent = false;
  // Under the job's rule a server may hold an answer back until other groups come. Silence does not mean then that the
  // server is away.
  bool awaits_quorum = false;
};

struct ExchangeProgress {
  absl::Time started;
  std::optional<absl::Time> answered;  // When the last answer came.
  bool suspect = false;                // The previous exchange failed.
};

absl::Time ExchangeDeadline(const ExchangePatience& patience, const ExchangeProgress& progress);

// Whether to give an exchange up after an attempt that ended at `now` because the server cannot be reached. Until then
// attempts are repeated, to bridge a quick restart. So a server whose process is gone costs only
// ExchangePatience::first, not `silence`.
bool GivesUpUnreachable(const ExchangePatience& patience, const ExchangeProgress& progress, absl::Time now);

// The inputs of a rank's patience. Ranks that are done wait for the others in a collective, which fails after
// `collective`. So exchanges must end before. The only rank of a group keeps no rank waiting: it also gets the time
// that `values` take in both directions.
struct GroupPatience {
  absl::Duration exchange;    // --exchange-timeout.
  absl::Duration grace;       // How long servers may wait for other groups.
  absl::Duration collective;  // --collective-timeout.
  uint64_t ranks = 1;
  uint64_t values = 0;         // Values that this rank exchanges.
  bool last = false;           // The job's last exchange: no later one makes up for it.
  bool awaits_quorum = false;  // ExchangePatience::awaits_quorum.
};
ExchangePatience PatienceOf(const GroupPatience& group);

// How much longer than a small message one of so many values may take. It assumes 1 MB/s: slower links cannot carry
// exchanges anyway.
absl::Duration TransferTime(uint64_t values);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_
