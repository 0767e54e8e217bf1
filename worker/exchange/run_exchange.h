#ifndef HOOKE_WORKER_EXCHANGE_RUN_EXCHANGE_H_
#define HOOKE_WORKER_EXCHANGE_RUN_EXCHANGE_H_

// For tests: one exchange from its start to its end.

#include <vector>

#include "absl/types/span.h"
#include "worker/exchange/exchange_client.h"

namespace hooke {

inline std::vector<ServerOutcome> RunExchange(ExchangeClient& client, const ExchangeCall& call,
                                              absl::Span<const float> sent, const AnswerSink& sink) {
  client.Start(call, sent, sink);
  return client.Wait();
}

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_RUN_EXCHANGE_H_
