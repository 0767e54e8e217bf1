#include "algorithms/update_rule.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "algorithms/elastic.h"

namespace hooke {
namespace {

class ElasticRule : public UpdateRule {
 public:
  explicit ElasticRule(double alpha) : alpha_(alpha) {}

  const char* name() const override { return "elastic"; }

  void Apply(const Contribution& from, absl::Span<float> center, absl::Span<float> answer) const override {
    ElasticExchange(alpha_, from.values, center, answer);
  }

 private:
  const double alpha_;
};

// The center becomes what the group sent; the group is not pulled.
class NoneRule : public UpdateRule {
 public:
  const char* name() const override { return "none"; }

  void Apply(const Contribution& from, absl::Span<float> center, absl::Span<float> answer) const override {
    std::copy(from.values.begin(), from.values.end(), center.begin());
    std::fill(answer.begin(), answer.end(), 0.0f);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(const UpdateRuleOptions& options) {
  switch (options.rule) {
    case RuleName::kElastic:
      // Written so that NaN is refused too.
      if (!(options.alpha > 0 && options.alpha < 1)) {
        return absl::InvalidArgumentError(
            absl::StrCat("elastic rule: alpha is ", options.alpha, "; allowed is 0 < alpha < 1"));
      }
      return std::make_unique<ElasticRule>(options.alpha);
    case RuleName::kNone:
      return std::make_unique<NoneRule>();
  }
  return absl::InvalidArgumentError(absl::StrCat("update rule number ", static_cast<int>(options.rule),
                                                 " is not known; allowed are elastic and none"));
}

}  // namespace hooke
