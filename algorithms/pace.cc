#include "algorithms/pace.h"

#include <algorithm>
#include <cmath>

namespace hooke {

double FastestPace(absl::Span<const GroupPace> paces, absl::Time now, absl::Duration memory) {
  double fastest = 0;
  for (const GroupPace& pace : paces) {
    if (now - pace.at <= memory) fastest = std::max(fastest, pace.steps_per_second);
  }
  return fastest;
}

uint64_t PacedInterval(uint64_t base, double own, double fastest) {
  // Written so that NaN gives `base`.
  if (!(own > 0) || !(fastest > own)) return base;
  const double interval = std::round(static_cast<double>(base) * (own / fastest));
  return std::max<uint64_t>(1, static_cast<uint64_t>(interval));
}

uint32_t NextFragment(absl::Span<const uint64_t> rounds) {
  return static_cast<uint32_t>(std::min_element(rounds.begin(), rounds.end()) - rounds.begin());
}

}  // namespace hooke
