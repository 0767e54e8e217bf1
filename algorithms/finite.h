#ifndef HOOKE_ALGORITHMS_FINITE_H_
#define HOOKE_ALGORITHMS_FINITE_H_

// What may become part of a center: finite numbers. One pass each, vectorized: every value that every group sends comes
// by here. Pure.

#include "absl/types/span.h"

namespace hooke {

// Whether all are finite: neither infinite nor NaN.
bool AllFinite(absl::Span<const float> values);

// Whether all are below 2^126 in magnitude, and so finite: what two of them differ by, and three of them sum to, is
// finite, too. A model's values are, unless its training has diverged.
bool AllModerate(absl::Span<const float> values);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_FINITE_H_
