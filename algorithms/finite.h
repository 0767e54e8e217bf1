#ifndef HOOKE_ALGORITHMS_FINITE_H_
#define HOOKE_ALGORITHMS_FINITE_H_

// Checks of the values that a center may take in. Each check is one vectorized pass, because servers check every value
// that a group sends. Pure.

#include "absl/types/span.h"

namespace hooke {

// True if no value is infinite or NaN.
bool AllFinite(absl::Span<const float> values);

// True if all magnitudes are below 2^126. Then the difference of two such values and the sum of three are finite as
// well. A model's values pass, unless its training has diverged.
bool AllModerate(absl::Span<const float> values);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_FINITE_H_
