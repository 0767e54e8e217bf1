#ifndef HOOKE_WORKER_EXCHANGE_BLOCKS_FRAME_H_
#define HOOKE_WORKER_EXCHANGE_BLOCKS_FRAME_H_

// What a rank's streams of all kinds make of messages: headers and payloads of wire/frame.h from blocks to send, and
// values from answers. A server's bytes decide no more than what is in them: an answer is as long, and encoded, as what
// was sent has it, before any memory is taken for it. Used by direct_stream.cc and grpc_server_calls.cc.

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "algorithms/compression.h"
#include "wire/frame.h"
#include "worker/exchange/server_calls.h"

namespace hooke {

ValuesHeader HeaderOf(const BlocksToSend& blocks);
// As long as the header announces; points into what `blocks` does.
absl::Span<const char> PayloadOf(const BlocksToSend& blocks);

// What an answer may be at most.
struct ExpectedAnswer {
  uint64_t values_max = 0;  // The most that one message has carried; 0: none was sent.
  Encoding encoding;
};

// What was sent on one stream, as far as answers follow from it. Thread-safe: one thread sends, another receives.
class SentMessages {
 public:
  // Before the message leaves.
  void Note(const BlocksToSend& blocks);
  ExpectedAnswer Expected() const;

 private:
  mutable absl::Mutex mutex_;
  ExpectedAnswer expected_ ABSL_GUARDED_BY(mutex_);
};

// Sets `answer` up for an answer with this header, and says where its payload is to be put: float32 in `answer` itself,
// what is encoded in `encoded`. INTERNAL: it is not what is expected; no memory was taken.
absl::StatusOr<absl::Span<char>> RoomFor(const ValuesHeader& header, const ExpectedAnswer& expected,
                                         std::vector<char>& encoded, AnsweredBlocks* answer);
// After the payload is in RoomFor's room. INTERNAL: it is none of values; the server is at fault.
absl::Status DecodeAnswer(const ValuesHeader& header, absl::Span<const char> payload, AnsweredBlocks* answer);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_BLOCKS_FRAME_H_
