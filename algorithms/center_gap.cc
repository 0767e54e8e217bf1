#include "algorithms/center_gap.h"

#include <cmath>
#include <cstddef>

#include "absl/base/macros.h"

namespace hooke {
namespace {

// The number of partial sums that do not depend on one another. With a single sum compilers could not vectorize the
// loop, because they may not reorder additions of floating-point numbers.
constexpr size_t kLanes = 8;

// `at(i)` returns the difference and the center's value at i.
template <typename At>
CenterGap SumOfSquares(size_t values, At at) {
  double differences[kLanes] = {}, centers[kLanes] = {};
  const size_t whole = values - values % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto [difference, center] = at(i + lane);
      differences[lane] += difference * difference;
      centers[lane] += center * center;
    }
  }
  CenterGap gap;
  for (size_t lane = 0; lane < kLanes; ++lane) gap += {differences[lane], centers[lane]};
  for (size_t i = whole; i < values; ++i) {
    const auto [difference, center] = at(i);
    gap += {difference * difference, center * center};
  }
  return gap;
}

struct Pair {
  double difference;
  double center;
};

}  // namespace

CenterGap GapBetween(absl::Span<const float> x, absl::Span<const float> center) {
  ABSL_ASSERT(x.size() == center.size());
  const float* __restrict from = x.data();
  const float* __restrict c = center.data();
  return SumOfSquares(x.size(), [from, c](size_t i) { return Pair{double{from[i]} - double{c[i]}, double{c[i]}}; });
}

CenterGap GapOfDifference(absl::Span<const float> difference, absl::Span<const float> center) {
  ABSL_ASSERT(difference.size() == center.size());
  const float* __restrict d = difference.data();
  const float* __restrict c = center.data();
  return SumOfSquares(center.size(), [d, c](size_t i) { return Pair{double{d[i]}, double{c[i]}}; });
}

CenterGap GapOfElasticAnswer(double alpha, absl::Span<const float> x, absl::Span<const float> answer) {
  ABSL_ASSERT(x.size() == answer.size());
  const double per_alpha = 1 / alpha;
  const float* __restrict from = x.data();
  const float* __restrict d = answer.data();
  return SumOfSquares(x.size(), [per_alpha, from, d](size_t i) {
    const double difference = per_alpha * d[i];
    return Pair{difference, double{from[i]} - difference};
  });
}

std::optional<double> RelativeDistance(const CenterGap& gap) {
  const double distance = std::sqrt(gap.difference / gap.center);
  if (gap.center <= 0 || !std::isfinite(gap.center) || !std::isfinite(distance)) return std::nullopt;
  return distance;
}

}  // namespace hooke
