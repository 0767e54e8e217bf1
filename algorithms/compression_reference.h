#ifndef HOOKE_ALGORITHMS_COMPRESSION_REFERENCE_H_
#define HOOKE_ALGORITHMS_COMPRESSION_REFERENCE_H_

// Compression as docs/compression.md says it, one value after another, in double and by powers of two: what the fast
// loops of compression.cc are tested against.

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "algorithms/compression.h"

namespace hooke {

// Of finite values.
std::string ReferenceEncode(const Encoding& encoding, absl::Span<const float> values);

// What such bytes stand for.
std::vector<float> ReferenceDecode(const Encoding& encoding, const std::string& bytes, size_t values);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_COMPRESSION_REFERENCE_H_
