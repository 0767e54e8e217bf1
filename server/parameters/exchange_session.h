#ifndef HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_
#define HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_

// The two streams that groups send, message by message and without gRPC: Initialize and Exchange of
// hooke.v1.ParameterServer. A session belongs to one stream and one thread; after an error the stream ends. Every field
// of a message is checked.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/shard.h"

namespace hooke {

class ExchangeSession {
 public:
  // `store` outlives the session.
  explicit ExchangeSession(const ParameterStore* store) : store_(store) {}

  // Takes one message. True: `response` is the answer to send. False: there is none to this message. Errors are those
  // of ParameterStore::Find and Shard::ApplyBlock, and INVALID_ARGUMENT.
  absl::StatusOr<bool> Receive(const v1::ExchangeRequest& request, v1::ExchangeResponse* response);

 private:
  const ParameterStore* const store_;
  std::shared_ptr<Shard> shard_;  // Null before the first header.
  Shard::Exchange exchange_;
  std::vector<float> values_;  // Of the message at hand; kept for their memory.
  std::vector<float> answer_;
};

class InitializeSession {
 public:
  explicit InitializeSession(ParameterStore* store) : store_(store) {}

  // Takes one message. True: more are expected. False: the center has values already; Finish is next.
  absl::StatusOr<bool> Receive(absl::Time now, const v1::InitializeRequest& request);
  // The sender has sent all. After OK the shard has its values, also on disk. INVALID_ARGUMENT where a block is
  // missing.
  absl::Status Finish();

 private:
  ParameterStore* const store_;
  std::shared_ptr<Shard> shard_;  // Null before the header.
  std::string job_id_;
  Speaker speaker_;
  std::vector<bool> written_;  // By block of the shard.
  std::vector<float> values_;
};

// Little-endian float32 as on the wire. INVALID_ARGUMENT where the length is no multiple of 4.
absl::Status DecodeValues(const v1::Block& block, std::vector<float>* values);
void EncodeBlock(uint64_t first, absl::Span<const float> values, v1::Block* block);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_
