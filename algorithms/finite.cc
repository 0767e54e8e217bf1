#include "algorithms/finite.h"

#include <cstdint>
#include <cstring>

namespace hooke {
namespace {

// Returns whether all magnitudes are below the float with the bits `bound_bits`. Float magnitudes have the same order
// as their bits without the sign, and NaN comes after infinity. The loop has no branch, so compilers vectorize it.
bool AllBelow(int32_t bound_bits, absl::Span<const float> values) {
  int32_t found = 0;
  for (const float value : values) {
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    found |= (bits & 0x7fffffff) >= bound_bits ? 1 : 0;
  }
  return found == 0;
}

}  // namespace

bool AllFinite(absl::Span<const float> values) {
  constexpr int32_t kInfinity = 0x7f800000;
  return AllBelow(kInfinity, values);
}

bool AllModerate(absl::Span<const float> values) {
  constexpr int32_t kTwoTo126 = (126 + 127) << 23;
  return AllBelow(kTwoTo126, values);
}

}  // namespace hooke
