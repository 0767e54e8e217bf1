#ifndef HOOKE_ALGORITHMS_COMPRESSION_H_
#define HOOKE_ALGORITHMS_COMPRESSION_H_

// How the values of an exchange are encoded in fewer bytes; docs/compression.md has the formulas, docs/wire.md the
// layout. Pure, and the same bytes on every machine: IEEE arithmetic, rounding to nearest, ties to even. Used by both
// ends of an exchange.
//
// Values are encoded in runs: 256 of them with kInt8, 128 with kInt4, 16384 with kTopK; the last may be shorter. A run
// is a function of its own values, and a block of a center is whole runs: so it has the same bytes, however an exchange
// is cut into messages.
//
// Stable: what Decode gives is encoded to itself by all but kTopK. So a value that was rounded once stays what it is.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace hooke {

// The numbers are those of docs/wire.md.
enum class Compression : uint8_t {
  kNone = 1,  // float32.
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt8 = 4,  // With a scale for each run.
  kInt4 = 5,
  kTopK = 6,  // The largest of each run, as bfloat16; the others are 0.
};
inline constexpr uint8_t kCompressionMax = 6;

// "float16": as in a job file.
const char* CompressionName(Compression compression);

inline constexpr uint64_t kInt8Run = 256;
inline constexpr uint64_t kInt4Run = 128;
inline constexpr uint64_t kTopKRun = 16384;
// A block that is a multiple of this is whole runs of every kind.
inline constexpr uint64_t kCompressionRun = kTopKRun;

struct Encoding {
  Compression compression = Compression::kNone;
  uint16_t top_k = 0;  // kTopK: how many values of a whole run are kept, 1 to kTopKRun. Others: 0.
};
bool operator==(const Encoding& a, const Encoding& b);

// ceil(fraction * kTopKRun), for `fraction` > 0, <= 1.
uint16_t TopKOf(double fraction);

// How a server encodes what it answers to values of encoding `sent`. A difference: alike. A center, which groups go on
// from: float16 to kTopK, as no value may be missing, and int8 to kInt4, which would leave them 15 different values.
Encoding AnswerEncoding(const Encoding& sent, bool answers_center);

// INVALID_ARGUMENT: no known compression, or a top_k out of range.
absl::Status CheckEncoding(const Encoding& encoding);

// How long so many values are. `encoding` is good.
uint64_t EncodedBytes(const Encoding& encoding, uint64_t values);

// `bytes` is as long as EncodedBytes says and overlaps nothing. INVALID_ARGUMENT: a value is infinite or not a number;
// the text says which; `bytes` is unspecified. Values beyond the largest of kFloat16, 65504, become that.
absl::Status Encode(const Encoding& encoding, absl::Span<const float> values, absl::Span<char> bytes);

// What Encode has written, or anything that a peer has sent, of the length that EncodedBytes says. After OK all values
// are finite. INVALID_ARGUMENT: no encoding of finite values; `values` is unspecified.
absl::Status Decode(const Encoding& encoding, absl::Span<const char> bytes, absl::Span<float> values);

// The values become what Decode makes of their encoding; an infinite one first becomes the largest finite one. None of
// them is NaN.
void RoundToEncoding(const Encoding& encoding, absl::Span<float> values);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_COMPRESSION_H_
