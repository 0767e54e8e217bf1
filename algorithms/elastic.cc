#include "algorithms/elastic.h"

#include <algorithm>
#include <cstddef>

#include "absl/base/macros.h"

namespace hooke {

double DefaultElasticAlpha(uint32_t groups) {
  const double p = groups;
  return std::min(0.9 / p, 1.0 / (p + 1.0));
}

void ElasticExchange(double alpha, absl::Span<const float> x, absl::Span<float> center, absl::Span<float> answer) {
  ABSL_ASSERT(x.size() == center.size() && x.size() == answer.size());
  const float a = static_cast<float>(alpha);
  // The spans do not overlap. __restrict says so, and compilers then vectorize the loops of this file.
  const float* __restrict from = x.data();
  float* __restrict c = center.data();
  float* __restrict d = answer.data();
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) {
    const float difference = a * (from[i] - c[i]);
    d[i] = difference;
    c[i] += difference;
  }
}

void ElasticDifference(double alpha, absl::Span<const float> x, absl::Span<const float> center,
                       absl::Span<float> answer) {
  ABSL_ASSERT(x.size() == center.size() && x.size() == answer.size());
  const float a = static_cast<float>(alpha);
  const float* __restrict from = x.data();
  const float* __restrict c = center.data();
  float* __restrict d = answer.data();
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) d[i] = a * (from[i] - c[i]);
}

void MoveByAnswer(absl::Span<const float> answer, absl::Span<float> center) {
  ABSL_ASSERT(answer.size() == center.size());
  const float* __restrict d = answer.data();
  float* __restrict c = center.data();
  const size_t n = answer.size();
  for (size_t i = 0; i < n; ++i) c[i] += d[i];
}

void ApplyElasticAnswer(absl::Span<const float> answer, absl::Span<float> x) {
  ABSL_ASSERT(answer.size() == x.size());
  const float* __restrict d = answer.data();
  float* __restrict to = x.data();
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) to[i] -= d[i];
}

}  // namespace hooke
