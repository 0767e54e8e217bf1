#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_CLIENT_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_CLIENT_H_

// Exchanges a rank's slice of the vector with all servers whose shards overlap the slice, at the same time.
// GroupExchange uses ExchangeClient, which knows no update rule. A server that fails leaves its part of the slice
// unchanged and does not delay the others. Calls come from one thread.

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
  uint32_t slices = 1;                // Number of slices; ranks from this number on have none.
  Partition partition{0};             // Partition of the job's vector.
  std::vector<ServerCalls*> servers;  // servers[i] holds shard i; they outlive the client.
  Encoding encoding;                  // Encoding of the values sent: the job's compression.
  bool answers_center = false;        // AnswersWithCenter of the job's rule; it decides how answers are encoded.
  uint32_t window_blocks = 16;        // Most unanswered blocks per server (AttachResponse.window_blocks); >= 1.
  // Creates a shard again, after its server has said that it does not know the job. It is called between Start and the
  // end of Wait, from other threads than Start's caller, for several servers at once.
  std::function<absl::Status(size_t server, absl::Time deadline)> recreate;
  // Called when a server becomes absent, with the time since when it is missed. Called with nullopt when it is
  // back. Called at any time, from other threads. May be empty.
  std::function<void(size_t server, std::optional<absl::Time> since)> on_presence;
  // Called with SetbackText when a server went back to a snapshot, only on the rank that exchanges the shard's first
  // block. Called at any time, from other threads. May be empty.
  std::function<void(std::string text)> on_setback;
};

struct ServerOutcome {
  std::string address;
  absl::Status status;  // The result of ServerExchange::Wait.
};

class ExchangeClient {
 public:
  explicit ExchangeClient(ExchangeOptions options);
  ~ExchangeClient();

  // The values that this rank exchanges. With more ranks than blocks some ranks have none.
  Range slice() const { return slice_; }
  // Number of servers with which this rank exchanges: those that hold blocks of its slice.
  size_t servers() const { return exchanges_.size(); }

  // Whether exchanges skip the server now: it failed an exchange and has answered no Locate call since.
  bool Skips(absl::string_view address) const;
  // Whether exchanges skip any server now.
  bool SkipsSome() const;

  // Start and Wait run one exchange of the slice, or of the call's fragment of it. The group can do something else in
  // between. Each server that answers in time applies every block exactly once, and `sink` gets the answers (see
  // ServerExchange). `sent` is the whole vector; only the slice is read.
  //
  // Start returns at once. Wait returns at the latest when the call's patience is over; `sent` and everything that
  // `sink` uses must live until then. There is one outcome, in the servers' order, for each server that has blocks to
  // exchange.
  void Start(const ExchangeCall& call, absl::Span<const float> sent, const AnswerSink& sink);
  std::vector<ServerOutcome> Wait();

 private:
  Range slice_;
  std::vector<std::unique_ptr<ServerExchange>> exchanges_;
  std::vector<ServerExchange*> started_;  // The exchanges started since the last Wait.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_CLIENT_H_
