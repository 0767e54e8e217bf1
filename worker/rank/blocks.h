#ifndef HOOKE_WORKER_RANK_BLOCKS_H_
#define HOOKE_WORKER_RANK_BLOCKS_H_

// Blocks of the center between memory and the wire: little-endian float32. Pure.

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "algorithms/sharding.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// The values [range.begin, range.end) of `vector` as a message.
void WriteBlock(absl::Span<const float> vector, const Range& range, v1::Block* block);

// The block's values, when it is exactly `expected`; otherwise INVALID_ARGUMENT saying what came instead.
absl::Status ReadBlock(const v1::Block& block, const Range& expected, std::vector<float>* values);

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_BLOCKS_H_
