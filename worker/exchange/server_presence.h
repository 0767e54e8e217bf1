#ifndef HOOKE_WORKER_EXCHANGE_SERVER_PRESENCE_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_PRESENCE_H_

// Decides whether a server takes part in a rank's exchanges, and when an absent one is asked whether it is back. Pure:
// the caller passes the time.
//
//   with us    exchanges wait for it as long as their patience lasts
//   away       exchanges skip it at once; a thread beside training asks it from time to time
//   back       it has answered: the next exchange tries it, for a short time
//
// After a failed exchange a server is away; after a successful one it is with us.
//
// A server whose round lacks its quorum answers no exchange either, but it answers questions. So it is tried again as
// soon as it has answered one, and nobody is told that it is absent.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace hooke {

// How an exchange ended for one server.
enum class ExchangeEnd {
  kComplete,  // Every block was answered.
  kPartial,   // Some blocks were answered, so the server is there but slow.
  kSilent,    // No block was answered.
  kMayWait,   // Some or all blocks were not answered, perhaps because the server waited for other groups.
};

class ServerPresence {
 public:
  // Whether exchanges skip the server.
  bool skipped() const { return missed_since_.has_value() && !back_; }
  // Whether the last exchange that tried the server failed.
  bool suspect() const { return missed_since_.has_value(); }
  // When the first exchange began that the server has missed since it was last with us; nullopt while it is with us.
  std::optional<absl::Time> missed_since() const { return missed_since_; }
  // Like missed_since, but for people. It is also nullopt while the server waits for other groups, and once an absent
  // server has answered a question. A server that answers a question and then fails an exchange stays absent until it
  // answers an exchange.
  std::optional<absl::Time> absent_since() const;

  // Records an exchange that tried the server: it began at `began` and ended at `now`.
  void Ended(ExchangeEnd end, absl::Time began, absl::Time now);

  // When the server is to be asked; InfiniteFuture: not at all.
  absl::Time next_question() const { return next_question_; }
  // Records a question that ended at `now`.
  void Asked(bool answered, absl::Time now);

 private:
  std::optional<absl::Time> missed_since_;
  bool back_ = false;        // It has answered a question since the last exchange that tried it.
  bool may_wait_ = false;    // The last exchange that tried it ended as kMayWait.
  bool silenced_ = false;    // The last question had no answer.
  bool unreliable_ = false;  // An exchange has failed although the server had answered a question before.
  uint32_t silent_ = 0;      // Number of exchanges in a row without any answer.
  absl::Time next_question_ = absl::InfiniteFuture();
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_PRESENCE_H_
