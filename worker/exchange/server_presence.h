#ifndef HOOKE_WORKER_EXCHANGE_SERVER_PRESENCE_H_
#define HOOKE_WORKER_EXCHANGE_SERVER_PRESENCE_H_

// Decides whether a server takes part in a rank's exchanges, and when a Locate call asks an absent one whether it is
// back. Pure: the caller passes the time. The states of a server:
//
//   with us    exchanges wait for it as long as their patience lasts
//   away       exchanges skip it at once; a thread beside training makes a Locate call from time to time
//   back       it has answered a Locate call: the next exchange tries it, for a short time
//
// After a failed exchange a server is away; after a successful one it is with us.
//
// A server whose round lacks its quorum answers no exchange either, but it answers Locate calls. So the next exchange
// tries it as soon as it has answered one. Such a server is not reported as absent.

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
  // The time from which users are told that the server is absent; nullopt while it is with us. It is the start of the
  // first exchange that the server has missed since it went away. In two more cases it is nullopt. One is a server that
  // waits for other groups. The other is an absent server that has answered a Locate call. A server that answers a
  // Locate call and then fails an exchange stays absent until it answers an exchange.
  std::optional<absl::Time> absent_since() const;

  // Records an exchange that tried the server: it began at `began` and ended at `now`.
  void Ended(ExchangeEnd end, absl::Time began, absl::Time now);

  // When the next Locate call is due; InfiniteFuture: none is due.
  absl::Time next_question() const { return next_question_; }
  // Records a Locate call that ended at `now`.
  void Asked(bool answered, absl::Time now);

 private:
  std::optional<absl::Time> missed_since_;  // Start of the first exchange missed since it went away.
  bool back_ = false;                       // It has answered a Locate call since the last exchange that tried it.
  bool may_wait_ = false;                   // The last exchange that tried it ended as kMayWait.
  bool silenced_ = false;                   // The last Locate call had no answer.
  bool unreliable_ = false;  // An exchange has failed although the server had answered a Locate call before.
  uint32_t silent_ = 0;      // How many exchanges in a row ended as kSilent.
  absl::Time next_question_ = absl::InfiniteFuture();
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_SERVER_PRESENCE_H_
