#include "algorithms/rule_facts.h"

#include <cstddef>

namespace hooke {
namespace {

// clang-format off
constexpr RuleFacts kRules[] = {
    // rule               name        sends                    pace                 shares    steps   momentum  relative
    {RuleName::kElastic,  "elastic",  RuleSends::kParameters,  RulePace::kAtOnce,   true,     true,   false,    false},
    {RuleName::kNone,     "none",     RuleSends::kParameters,  RulePace::kAtOnce,   false,    true,   false,    false},
    {RuleName::kSync,     "sync",     RuleSends::kGradients,   RulePace::kInRounds, true,     false,  false,    false},
    {RuleName::kAsync,    "async",    RuleSends::kGradients,   RulePace::kAtOnce,   true,     false,  false,    false},
    {RuleName::kSsp,      "ssp",      RuleSends::kGradients,   RulePace::kBounded,  true,     false,  false,    false},
    {RuleName::kDownpour, "downpour", RuleSends::kGradients,   RulePace::kAtOnce,   true,     true,   false,    false},
    {RuleName::kAverage,  "average",  RuleSends::kDistances,   RulePace::kInRounds, true,     true,   false,    false},
    {RuleName::kBmuf,     "bmuf",     RuleSends::kDistances,   RulePace::kInRounds, true,     true,   true,     false},
    {RuleName::kSlowMo,   "slowmo",   RuleSends::kDistances,   RulePace::kInRounds, true,     true,   true,     true},
    {RuleName::kDiLoCo,   "diloco",   RuleSends::kDistances,   RulePace::kInRounds, true,     true,   true,     false},
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

bool SendsGradients(RuleName rule) { return FactsOf(rule).sends == RuleSends::kGradients; }

}  // namespace hooke
