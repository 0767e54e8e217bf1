#ifndef HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_
#define HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_

// The two streams that groups send, message by message and without their calls: Initialize and Exchange of
// hooke.v1.ParameterServer, in the format of docs/wire.md. A session belongs to one stream and one thread; after an
// error the stream ends. Every field of a message is checked.

#include <grpcpp/support/byte_buffer.h>

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
#include "wire/frame_buffer.h"

namespace hooke {

// Room for the payload of a message, aligned like floats, in `memory`, which grows as needed.
absl::Span<char> PayloadIn(std::vector<float>& memory, const ValuesHeader& header);

class ExchangeSession {
 public:
  // `store` outlives the session.
  explicit ExchangeSession(const ParameterStore* store) : store_(store) {}

  // Takes one message. True: `answer` is to be sent. False: there is none to this message. Errors are those of
  // ParameterStore::Find, Shard::CheckSpeaker and Shard::ApplyBlock, and INVALID_ARGUMENT. After an error some of the
  // message's blocks may have been applied.
  absl::StatusOr<bool> Receive(const grpc::ByteBuffer& message, grpc::ByteBuffer* answer);
  // After the opening, to which alone there is no answer.
  const v1::Sender& sender() const { return sender_; }

  // The same in parts, for streams that receive values where they are wanted: the opening; then for each message of
  // values its header, and its payload, which becomes that of the answer. Payloads are aligned like floats, and as long
  // as the headers announce.
  absl::Status Open(const v1::Sender& sender);
  absl::Status CheckHeader(const ValuesHeader& header) const;
  // Of the answer to a message whose header was checked.
  ValuesHeader AnswerHeader(const ValuesHeader& header) const;
  absl::Status Apply(const ValuesHeader& header, absl::Span<const char> payload, absl::Span<char> answer);

 private:
  absl::Status ApplyBlocks(const ValuesHeader& header, absl::Span<const float> values, absl::Span<float> answer);
  absl::Status ApplyEncoded(const ValuesHeader& header, absl::Span<const char> payload, absl::Span<char> answer);

  const ParameterStore* const store_;
  std::shared_ptr<Shard> shard_;  // Null before the opening.
  v1::Sender sender_;
  Shard::Exchange exchange_;
  // Of the message at hand; kept for their memory.
  std::vector<float> payload_;  // As it came.
  std::vector<float> values_;   // Decoded,
  std::vector<float> answer_;   // and what is answered, to be encoded.
  FramePool answers_;
};

class InitializeSession {
 public:
  explicit InitializeSession(ParameterStore* store) : store_(store) {}

  // Takes one message. True: more are expected. False: the center has values already; Finish is next.
  absl::StatusOr<bool> Receive(absl::Time now, const grpc::ByteBuffer& message);
  // The sender has sent all. After OK the shard has its values, also on disk. INVALID_ARGUMENT where a block is
  // missing.
  absl::Status Finish();

 private:
  absl::Status Open(const IncomingFrame& frame);
  absl::Status WriteBlock(absl::Time now, uint64_t first, absl::Span<const float> values);

  ParameterStore* const store_;
  std::shared_ptr<Shard> shard_;  // Null before the opening.
  std::string job_id_;
  Speaker speaker_;
  std::vector<bool> written_;  // By block of the shard.
  std::vector<float> values_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_
