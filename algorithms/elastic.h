#ifndef HOOKE_ALGORITHMS_ELASTIC_H_
#define HOOKE_ALGORITHMS_ELASTIC_H_

// Elastic averaging SGD (Zhang, Choromanska, LeCun, arXiv 1412.6651): group and center pull at each other like the ends
// of a spring. The server computes d = alpha (x - c) and c += d; the group computes x -= d. So center + sum of groups
// stays the same, in any interleaving of exchanges.

#include <cstdint>

#include "absl/types/span.h"

namespace hooke {

// Returns min(0.9 / groups, 1 / (groups + 1)); `groups` >= 1. The second term is ours: with fewer than nine groups the
// paper's choice, groups * alpha = 0.9, overshoots. If all groups then exchange against one center, alpha + groups *
// alpha exceeds 1.
double DefaultElasticAlpha(uint32_t groups);

// The server's half for one block: answer = alpha (x - center); center += answer. The spans have one length and do not
// overlap.
void ElasticExchange(double alpha, absl::Span<const float> x, absl::Span<float> center, absl::Span<float> answer);

// ElasticExchange in two steps, so that the caller can change the answer between them. ElasticDifference computes
// answer = alpha (x - center).
void ElasticDifference(double alpha, absl::Span<const float> x, absl::Span<const float> center,
                       absl::Span<float> answer);
// MoveByAnswer computes center += answer.
void MoveByAnswer(absl::Span<const float> answer, absl::Span<float> center);

// The group's half: x -= answer. The spans have one length. It may run after further local steps, because the answer is
// a difference.
void ApplyElasticAnswer(absl::Span<const float> answer, absl::Span<float> x);

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_ELASTIC_H_
