#ifndef HOOKE_ALGORITHMS_CENTER_GAP_H_
#define HOOKE_ALGORITHMS_CENTER_GAP_H_

// How far a group's values are from the center. Pure. `x` are the group's values, `c` those of the center.

#include <optional>

#include "absl/types/span.h"

namespace hooke {

// Sums of squares, so that the gaps of blocks, and of ranks, add up to that of the whole vector.
struct CenterGap {
  double difference = 0;  // Sum of (x - c)^2.
  double center = 0;      // Sum of c^2.

  CenterGap& operator+=(const CenterGap& other) {
    difference += other.difference;
    center += other.center;
    return *this;
  }
};

// Returns the gap between two spans of one length.
CenterGap GapBetween(absl::Span<const float> x, absl::Span<const float> center);
// Returns the same gap from x - c, or from c - x.
CenterGap GapOfDifference(absl::Span<const float> difference, absl::Span<const float> center);
// Returns the same gap from an answer under rule elastic: `answer` is alpha (x - c), with the center before its change.
CenterGap GapOfElasticAnswer(double alpha, absl::Span<const float> x, absl::Span<const float> answer);

// Returns the length of the difference, divided by the length of the center. nullopt: the center is all zeros, or a sum
// is not finite.
std::optional<double> RelativeDistance(const CenterGap& gap);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_CENTER_GAP_H_
