#ifndef HOOKE_WORKER_EXCHANGE_BLOCKS_FRAME_H_
#define HOOKE_WORKER_EXCHANGE_BLOCKS_FRAME_H_

// Turns blocks into the frames of wire/frame.h, and answers into values, for every kind of stream.
//
// A server's bytes are not trusted. The messages that were sent limit the length of an answer and fix its encoding.
// Both are checked before memory is taken for it.

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
// Returns the message's payload, as long as HeaderOf(blocks) says (PayloadBytes). It points into the memory that
// `blocks` points into.
absl::Span<const char> PayloadOf(const BlocksToSend& blocks);

// The limits of an answer.
struct ExpectedAnswer {
  uint64_t values_max = 0;  // The most values that one message has carried; 0: no message was sent.
  Encoding encoding;
};

// Derives the limits of answers from the messages sent on one stream. Thread-safe: one thread sends, another receives.
class SentMessages {
 public:
  // Takes account of a message. Call it before the message leaves, because its answer may come at once.
  void Note(const BlocksToSend& blocks);
  ExpectedAnswer Expected() const;

 private:
  mutable absl::Mutex mutex_;
  ExpectedAnswer expected_ ABSL_GUARDED_BY(mutex_);
};

// Prepares `answer` for an answer with this header. Returns the memory for its payload: float32 values go into `answer`
// itself, all other encodings into `encoded`. INTERNAL: the header breaks the limits; no memory was taken.
absl::StatusOr<absl::Span<char>> RoomFor(const ValuesHeader& header, const ExpectedAnswer& expected,
                                         std::vector<char>& encoded, AnsweredBlocks* answer);
// Decodes the payload after it was read into the memory from RoomFor. INTERNAL: it does not decode to finite values,
// which is the server's fault.
absl::Status DecodeAnswer(const ValuesHeader& header, absl::Span<const char> payload, AnsweredBlocks* answer);

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_BLOCKS_FRAME_H_
