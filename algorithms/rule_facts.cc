#include "algorithms/rule_facts.h"

#include <cstddef>

namespace hooke {
namespace {

using Sends = RuleSends;
using Pace = RulePace;
using Nesterov = RuleNesterov;

// clang-format off
constexpr RuleFacts kRules[] = {
    // rule               name        sends               pace             shares steps  momentum relative nesterov           interval, rate, momentum
    {RuleName::kElastic,  "elastic",  Sends::kParameters, Pace::kAtOnce,   true,  true,  false,   false,   Nesterov::kNever,  {16, 1, 0}},
    {RuleName::kNone,     "none",     Sends::kParameters, Pace::kAtOnce,   false, true,  false,   false,   Nesterov::kNever,  {16, 1, 0}},
    {RuleName::kSync,     "sync",     Sends::kGradients,  Pace::kInRounds, true,  false, false,   false,   Nesterov::kNever,  {1, 1, 0}},
    {RuleName::kAsync,    "async",    Sends::kGradients,  Pace::kAtOnce,   true,  false, false,   false,   Nesterov::kNever,  {1, 1, 0}},
    {RuleName::kSsp,      "ssp",      Sends::kGradients,  Pace::kBounded,  true,  false, false,   false,   Nesterov::kNever,  {1, 1, 0}},
    {RuleName::kDownpour, "downpour", Sends::kGradients,  Pace::kAtOnce,   true,  true,  false,   false,   Nesterov::kNever,  {16, 1, 0}},
    {RuleName::kAverage,  "average",  Sends::kDistances,  Pace::kInRounds, true,  true,  false,   false,   Nesterov::kNever,  {16, 1, 0}},
    {RuleName::kBmuf,     "bmuf",     Sends::kDistances,  Pace::kInRounds, true,  true,  true,    false,   Nesterov::kByJob,  {16, 1, kMomentumByGroups}},
    {RuleName::kSlowMo,   "slowmo",   Sends::kDistances,  Pace::kInRounds, true,  true,  true,    true,    Nesterov::kNever,  {16, 1, 0.7}},
    {RuleName::kDiLoCo,   "diloco",   Sends::kDistances,  Pace::kInRounds, true,  true,  true,    false,   Nesterov::kAlways, {64, 0.7, 0.9}},
};
// clang-format on

constexpr bool NumbersAreInOrder() {
  for (size_t i = 0; i < sizeof(kRules) / sizeof(kRules[0]); ++i) {
    if (static_cast<size_t>(kRules[i].rule) != i + 1) return false;
  }
  return true;
}
static_assert(NumbersAreInOrder(), "a rule is found by its number");

}  // namespace

absl::Span<const RuleFacts> AllRules() { return kRules; }

const RuleFacts& FactsOf(RuleName rule) { return kRules[static_cast<size_t>(rule) - 1]; }

std::optional<RuleName> RuleOf(uint32_t number) {
  if (number < 1 || number > AllRules().size()) return std::nullopt;
  return AllRules()[number - 1].rule;
}

bool WaitsForOthers(RuleName rule) { return FactsOf(rule).pace != RulePace::kAtOnce; }

bool InRounds(RuleName rule) { return FactsOf(rule).pace == RulePace::kInRounds; }

bool AnswersWithCenter(RuleName rule) { return FactsOf(rule).sends != RuleSends::kParameters; }

bool SendsFromLastAnswer(RuleName rule) { return AnswersWithCenter(rule) && FactsOf(rule).steps_locally; }

bool CenterIsMean(RuleName rule) {
  const RuleFacts& facts = FactsOf(rule);
  return facts.sends == RuleSends::kDistances && !facts.has_momentum;
}

bool SendsGradients(RuleName rule) { return FactsOf(rule).sends == RuleSends::kGradients; }

}  // namespace hooke
