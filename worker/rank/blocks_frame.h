#ifndef HOOKE_WORKER_RANK_BLOCKS_FRAME_H_
#define HOOKE_WORKER_RANK_BLOCKS_FRAME_H_

// What a rank's streams of all kinds make of messages: headers and payloads of proto/frame.h from blocks to send, and
// values from answers. Pure. Used by direct_stream.cc and grpc_server_calls.cc.

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/frame.h"
#include "worker/rank/server_calls.h"

namespace hooke {

ValuesHeader HeaderOf(const BlocksToSend& blocks);
// As long as the header announces; points into what `blocks` does.
absl::Span<const char> PayloadOf(const BlocksToSend& blocks);

// Sets `answer` up for an answer with this header, and says where its payload is to be put: float32 in `answer` itself,
// what is encoded in `encoded`.
absl::Span<char> RoomFor(const ValuesHeader& header, std::vector<char>& encoded, AnsweredBlocks* answer);
// After the payload is in RoomFor's room. INTERNAL: it is none of values; the server is at fault.
absl::Status DecodeAnswer(const ValuesHeader& header, absl::Span<const char> payload, AnsweredBlocks* answer);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_BLOCKS_FRAME_H_
