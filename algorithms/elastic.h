#ifndef HOOKE_ALGORITHMS_ELASTIC_H_
#define HOOKE_ALGORITHMS_ELASTIC_H_

// Elastic averaging SGD (Zhang, Choromanska, LeCun, arXiv 1412.6651): group and center pull at each other like the ends
// of a spring. Server: d = alpha (x - c); c += d. Group: x -= d. So an exchange conserves center + sum of groups, in
// any interleaving.

#include <cstdint>

#include "absl/types/span.h"

namespace hooke {

// min(0.9 / groups, 1 / (groups + 1)). Where all exchange against one center, the paper's beta = groups * alpha = 0.9
// overshoots for fewer than nine groups: alpha + beta is more than 1.
// `groups` >= 1.
double DefaultElasticAlpha(uint32_t groups);

// The server's half on one block: answer = alpha (x - center); center += answer. Same lengths, no overlap.
void ElasticExchange(double alpha, absl::Span<const float> x, absl::Span<float> center, absl::Span<float> answer);

// The same in two steps, for an answer that is changed between them: answer = alpha (x - center); center += answer.
void ElasticDifference(double alpha, absl::Span<const float> x, absl::Span<const float> center,
                       absl::Span<float> answer);
void MoveByAnswer(absl::Span<const float> answer, absl::Span<float> center);

// The group's half: x -= answer. Same lengths. May run late (after further local steps): the answer is a difference.
void ApplyElasticAnswer(absl::Span<const float> answer, absl::Span<float> x);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_ELASTIC_H_
