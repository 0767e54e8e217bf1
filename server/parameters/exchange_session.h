#ifndef HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_
#define HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_

// Handles the messages of the two streams that groups send: Initialize and Exchange of hooke.v1.ParameterServer, in the
// format of docs/wire.md. The caller receives and sends the bytes. A session belongs to one stream, and its calls come
// from one thread at a time; after an error the caller ends the stream. Every field of a message is checked.

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

// Resizes `memory` for the payload of a message, and returns the payload's place in it, aligned like floats.
absl::Span<char> PayloadIn(std::vector<float>& memory, const ValuesHeader& header);

class ExchangeSession {
 public:
  // `store` outlives the session. `done` is needed for Begin.
  explicit ExchangeSession(ParameterStore* store, std::function<void(absl::Status)> done = nullptr) : store_(store) {
    turn_.done = std::move(done);
  }

  // Takes the opening. nullopt: the job's shard is not loaded yet; call Open again after ParameterStore::Load. Errors
  // are those of ParameterStore::Find and Shard::CheckSpeaker, and INVALID_ARGUMENT.
  std::optional<absl::Status> Open(const v1::Sender& sender);
  // Returns the rank that sends on this stream. Valid after the opening.
  const v1::Sender& sender() const { return sender_; }

  absl::Status CheckHeader(const ValuesHeader& header) const;
  // Returns the header of the answer. `header` has passed CheckHeader.
  ValuesHeader AnswerHeader(const ValuesHeader& header) const;

  // Applies one message of values, and writes the payload of its answer. `header` has passed CheckHeader. Payloads are
  // aligned like floats and as long as their headers announce. Errors are those of Shard::Begin, and INVALID_ARGUMENT.
  // After an error some of the message's blocks may have been applied.
  //
  // nullopt: the message waits for other groups. `done` is then called once with a status, on any thread, perhaps
  // before Begin has returned. Pass that status to Resume. Until then the session, `payload` and `answer` stay alive.
  // Shard::until_look says when the shard must be looked at.
  std::optional<absl::Status> Begin(const ValuesHeader& header, absl::Span<const char> payload,
                                    absl::Span<char> answer);
  // Goes on with the message. Returns what Begin returns.
  std::optional<absl::Status> Resume(absl::Status status);

  // The same for messages in gRPC's memory. Returns the sender of an opening, for Open. nullopt: the message has
  // values, which are kept here; call BeginTaken. INVALID_ARGUMENT: it is no message, or CheckHeader refuses it.
  absl::StatusOr<std::optional<v1::Sender>> Take(const grpc::ByteBuffer& message);
  // Begins what Take has taken, and returns what Begin returns.
  std::optional<absl::Status> BeginTaken();
  // Returns the answer. Call it once BeginTaken or Resume has returned OK.
  grpc::ByteBuffer TakeAnswer();

  // Null before the opening.
  const std::shared_ptr<Shard>& shard() const { return shard_; }

 private:
  // The message that Begin has begun.
  struct Begun {
    ValuesHeader header;
    absl::Span<const float> values;
    absl::Span<float> answer;
    absl::Span<char> encoded;    // Where the answer goes once it is encoded; empty if it is not encoded.
    absl::Time arrived;          // On the clock of the shard's meter.
    uint64_t done = 0;           // How many values have been applied.
    absl::Duration waited = {};  // For other groups, as far as these waits have ended.
  };

  absl::Status DecodeValues(const ValuesHeader& header, absl::Span<const char> payload);
  absl::Status EncodeAnswer(uint64_t first, absl::Span<char> answer) const;
  std::optional<absl::Status> GoOn();
  std::optional<absl::Status> ApplyBlocks();
  // Tells the shard's meter and its list of exchanges the end of the message.
  absl::Status NoteMessageEnd(absl::Status status);

  ParameterStore* const store_;
  std::shared_ptr<Shard> shard_;  // Null before the opening.
  v1::Sender sender_;
  Turn turn_;
  Begun begun_;
  // Scratch for the current message; members only to reuse their capacity.
  std::vector<float> values_;  // The decoded values.
  std::vector<float> answer_;  // The answer before it is encoded.
  // The message of Take: its header, its payload as received, and its answer as gRPC sends it.
  ValuesHeader taken_;
  std::vector<float> payload_;
  std::optional<OutgoingFrame> answered_;
  FramePool answers_;
};

class InitializeSession {
 public:
  explicit InitializeSession(ParameterStore* store) : store_(store) {}

  // Takes one message. True: more are expected. False: the center already has values; call Finish next.
  absl::StatusOr<bool> Receive(absl::Time now, const grpc::ByteBuffer& message);
  // Completes the initialization. Call it when the sender has sent everything. After OK the shard has its values, also
  // on disk. INVALID_ARGUMENT: the opening or a block is missing. Other errors are those of
  // ParameterStore::FinishInitialize.
  absl::Status Finish();

 private:
  absl::Status Open(const IncomingFrame& frame);
  absl::Status WriteBlock(absl::Time now, const ValuesHeader& header, uint64_t first, absl::Span<const float> values);

  ParameterStore* const store_;
  std::shared_ptr<Shard> shard_;  // Null before the opening.
  std::string job_id_;
  Speaker speaker_;
  bool rewinds_ = false;       // The center had values at the opening, and the sender may write them back.
  std::vector<bool> written_;  // Whether each block of the shard has come.
  std::vector<float> values_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_EXCHANGE_SESSION_H_
