#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_

// When an exchange with a server is given up. Pure. Used by ServerExchange and GroupExchange.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace hooke {

// How long a server may take.
struct ExchangePatience {
  // To give an answer, to whatever, from the start of the exchange or from its last one. So a slow link starves nobody,
  // however much is exchanged, as long as something comes.
  absl::Duration silence;
  absl::Duration first;                             // To give the first one, where it failed the exchange before.
  absl::Duration whole = absl::InfiniteDuration();  // With all of it.
  // An exchange does without a server that is known to be away (server_presence.h), and so costs no time.
  bool skips_absent = false;
  // Under the job's rule a server may owe an answer because it waits for other groups, for as long as these take to
  // come. Then silence does not mean that the server is away.
  bool awaits_quorum = false;
};

struct ExchangeProgress {
  absl::Time started;
  std::optional<absl::Time> answered;  // When the last answer came.
  bool suspect = false;                // The exchange before failed.
};

absl::Time ExchangeDeadline(const ExchangePatience& patience, const ExchangeProgress& progress);

// An attempt has ended at `now` because the server cannot be reached, as when its process is gone: whether the exchange
// is given up, or tries again to bridge a quick restart. So a server that refuses connections costs the first notice
// ExchangePatience::first, not `silence`.
bool GivesUpUnreachable(const ExchangePatience& patience, const ExchangeProgress& progress, absl::Time now);

// The patience of a group's ranks. The ranks that are done wait in a collective for the others, and give them up after
// `collective`: an exchange of theirs ends before. Who is alone has the time that `values` take, both ways.
struct GroupPatience {
  absl::Duration exchange;    // --exchange-timeout.
  absl::Duration grace;       // For which servers may wait for other groups.
  absl::Duration collective;  // --collective-timeout.
  uint64_t ranks = 1;
  uint64_t values = 0;         // That this rank exchanges.
  bool last = false;           // No next exchange makes up for this one.
  bool awaits_quorum = false;  // ExchangePatience::awaits_quorum.
};
ExchangePatience PatienceOf(const GroupPatience& group);

// How much longer than a small one a message of so many values may take on its way, at 1 MB/s: slower links cannot
// carry exchanges either.
absl::Duration TransferTime(uint64_t values);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_DEADLINE_H_
