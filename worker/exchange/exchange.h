#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_H_

// A rank's side of its group's exchanges with the center: the rank's slice of the vector, with every server whose shard
// overlaps it, all at the same time. The servers are independent: one that fails leaves its part of the slice as it is
// and holds up nobody else. Made once by the trainer's owner; used by one thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/server_calls.h"
#include "worker/exchange/server_exchange.h"

namespace hooke {

struct ExchangeOptions {
  v1::Sender sender;
  uint32_t ranks = 1;                 // Of the group.
  Partition partition{0};             // Of the job's vector.
  std::vector<ServerCalls*> servers;  // Of shard 0, 1, ...; they outlive the client.
  Encoding encoding;                  // Of what is sent: the job's compression.
  bool answers_center = false;        // AnswersWithCenter, of the job's rule: how answers are encoded follows from it.
  uint32_t window_blocks = 16;        // Most unanswered blocks per server (AttachResponse.window_blocks); >= 1.
  // A server does not know the job any more: creates its shard there again from the group's values. Called from another
  // thread than Start's caller, between Start and the end of Wait; several at once for several servers.
  std::function<absl::Status(size_t server, absl::Span<const float> vector, absl::Time deadline)> recreate;
  // A server begins to be away, with since when, or ends to be. Called as `recreate` is, at any time. May be empty.
  std::function<void(size_t server, std::optional<absl::Time> since)> on_presence;
  // A server went back to a snapshot: SetbackText. Called as on_presence, for the rank that exchanges the shard's first
  // block. May be empty.
  std::function<void(std::string text)> on_setback;
};

struct ServerOutcome {
  std::string address;
  absl::Status status;  // As ServerExchange::Wait.
};

class ExchangeClient {
 public:
  explicit ExchangeClient(ExchangeOptions options);
  ~ExchangeClient();

  // The values this rank exchanges; empty where there are more ranks than blocks.
  Range slice() const { return slice_; }

  // Whether exchanges do without a server now: it was silent in the last one, and when it was asked since.
  bool Skips(absl::string_view address) const;
  // The same of any server.
  bool SkipsSome() const;

  // One exchange: on each server that answers in time, every block of the slice, or of the call's fragment of it, is
  // applied exactly once, and its answer given to `sink` (see ServerExchange). `sent` is the whole vector; only the
  // slice is read. Returns when the call's patience is at an end at the latest. One outcome for each server that
  // overlaps the slice, where it overlaps the fragment, in the servers' order.
  std::vector<ServerOutcome> Exchange(const ExchangeCall& call, absl::Span<const float> sent, const AnswerSink& sink);

  // The same in two halves, between which the group does something else: Start returns at once, Wait when
  // the call's patience is at an end, at the latest; `sent` lives until then, and what `sink` calls.
  void Start(const ExchangeCall& call, absl::Span<const float> sent, const AnswerSink& sink);
  std::vector<ServerOutcome> Wait();

 private:
  Range slice_;
  std::vector<std::unique_ptr<ServerExchange>> exchanges_;
  std::vector<ServerExchange*> started_;  // Since the last Wait.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_H_
