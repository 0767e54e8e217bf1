#ifndef HOOKE_ALGORITHMS_COMPRESSION_H_
#define HOOKE_ALGORITHMS_COMPRESSION_H_

// Encodes the values of an exchange in fewer bytes; docs/compression.md has the formulas, docs/wire.md the layout.
// Pure. Every machine writes the same bytes: IEEE arithmetic, rounding to nearest, ties to even.
//
// Values are encoded in runs: 256 values with kInt8, 128 with kInt4, 16384 with kTopK; the last run may be shorter. A
// run's bytes depend on its own values only. Blocks are whole runs, so a block's bytes do not depend on how an exchange
// is cut into messages.
//
// Encodings other than kTopK are stable: decoded values stay the same if they are encoded and decoded again. So a value
// that was rounded once does not change when it is sent again.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace hooke {

// docs/wire.md assigns the numbers.
enum class Compression : uint8_t {
  kNone = 1,  // float32.
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt8 = 4,  // kInt8 and kInt4 have one scale for each run.
  kInt4 = 5,
  kTopK = 6,  // The largest values of each run, as bfloat16; the other values become 0.
};
inline constexpr uint8_t kCompressionMax = 6;

// The name in job files, like "float16".
const char* CompressionName(Compression compression);

inline constexpr uint64_t kInt8Run = 256;
inline constexpr uint64_t kInt4Run = 128;
inline constexpr uint64_t kTopKRun = 16384;
// A block whose length is a multiple of this consists of whole runs under every compression.
inline constexpr uint64_t kCompressionRun = kTopKRun;

struct Encoding {
  Compression compression = Compression::kNone;
  uint16_t top_k = 0;  // kTopK: how many values of a whole run are kept, 1 to kTopKRun. Others: 0.
};
bool operator==(const Encoding& a, const Encoding& b);

// Returns ceil(fraction * kTopKRun); `fraction` is > 0 and <= 1.
uint16_t TopKOf(double fraction);

// Returns the encoding of a server's answer to values that had the encoding `sent`. A difference is encoded as `sent`.
// A center is too, but with float16 in place of kTopK and int8 in place of kInt4. Groups continue from a center, so no
// value of it may be missing or coarse.
Encoding AnswerEncoding(const Encoding& sent, bool answers_center);

// Returns how many bytes `values` encoded values take. `encoding` must be as Encoding says.
uint64_t EncodedBytes(const Encoding& encoding, uint64_t values);

// Encodes `values` into `bytes`, which has the length that EncodedBytes returns and overlaps nothing. With kFloat16,
// values beyond the largest finite value, 65504, become that value. INVALID_ARGUMENT names the first value that is
// infinite or not a number; `bytes` is unspecified then.
absl::Status Encode(const Encoding& encoding, absl::Span<const float> values, absl::Span<char> bytes);

// Decodes bytes that Encode wrote, or untrusted bytes from a peer. Their length must be what EncodedBytes returns.
// After OK all values are finite. INVALID_ARGUMENT if the bytes break a rule of the format (docs/wire.md); `values` is
// unspecified then.
absl::Status Decode(const Encoding& encoding, absl::Span<const char> bytes, absl::Span<float> values);

// Replaces the values by those that Encode and Decode would make of them. With kNone nothing changes. Otherwise an
// infinite value first becomes the largest finite one of its sign. No value may be NaN.
void RoundToEncoding(const Encoding& encoding, absl::Span<float> values);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_COMPRESSION_H_
