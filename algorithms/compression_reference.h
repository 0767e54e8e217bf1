#ifndef HOOKE_ALGORITHMS_COMPRESSION_REFERENCE_H_
#define HOOKE_ALGORITHMS_COMPRESSION_REFERENCE_H_

// Compression as docs/compression.md defines it: one value at a time, in double, by powers of two. Tests compare the
// fast loops of compression.cc with it.

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "algorithms/compression.h"

namespace hooke {

// Returns the encoded values. All values must be finite.
std::string ReferenceEncode(const Encoding& encoding, absl::Span<const float> values);

// Returns the decoded values. `bytes` must come from ReferenceEncode with the same number of values.
std::vector<float> ReferenceDecode(const Encoding& encoding, const std::string& bytes, size_t values);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_COMPRESSION_REFERENCE_H_
