#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_

// Decides when a rank gives up an exchange with a server. Pure.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace hooke {

// How long a server may take.
struct ExchangePatience {
  // Longest time from the start of the exchange to an answer, and from each answer to the next. So an exchange over a
  // slow link may take long if answers keep coming.
  absl::Duration silence;
  // Time for the first answer, if the server failed the previous exchange.
  absl::Duration first;
  absl::Duration whole = absl::InfiniteDuration();  // Time for the whole exchange.
  // How long a server that cannot be reached is tried again (GivesUpUnreachable).
  absl::Duration unreachable = absl::ZeroDuration();
  // Whether to skip a server that is known to be away (server_presence.h). Skipping costs no time.
  bool skips_absent = false;
  // Whether a server may hold an answer back for longer than the job's grace_seconds, until a quorum of groups has
  // come. If so, a server that does not answer need not be away.
  bool awaits_quorum = false;
};

struct ExchangeProgress {
  absl::Time started;
  std::optional<absl::Time> answered;  // When the last answer came.
  bool suspect = false;                // The previous exchange failed.
};

absl::Time ExchangeDeadline(const ExchangePatience& patience, const ExchangeProgress& progress);

// Whether to give an exchange up after an attempt that ended at `now` because the server cannot be reached. Until this
// is true, attempts are repeated, because a connection may break although the server is there. If the server's process
// is gone, each group waits `patience.unreachable` for it once, and later exchanges skip it. So this time is short, and
// does not last through a restart. A thread beside training asks the server whether it is back (server_presence.h).
bool GivesUpUnreachable(const ExchangePatience& patience, const ExchangeProgress& progress, absl::Time now);

// The inputs of a rank's patience. Ranks that are done wait for the others in a collective, which fails after
// `collective`. So exchanges must end earlier. If a group has only one rank, no other rank waits, so its exchanges also
// get the time that `values` take in both directions.
struct GroupPatience {
  absl::Duration exchange;    // --exchange-timeout.
  absl::Duration grace;       // How long servers may wait for other groups.
  absl::Duration collective;  // --collective-timeout.
  uint64_t ranks = 1;
  uint64_t values = 0;         // Values that this rank exchanges.
  bool last = false;           // Whether this is the group's last exchange; no later one makes up for it.
  bool awaits_quorum = false;  // ExchangePatience::awaits_quorum.
};
ExchangePatience PatienceOf(const GroupPatience& group);

// How much longer a message of `values` values may take than a small one. It assumes 1 MB/s, because slower links
// cannot carry exchanges anyway.
absl::Duration TransferTime(uint64_t values);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_
