#include "algorithms/learning_rate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

constexpr double kPi = 3.14159265358979323846;

absl::Status OutOfRange(absl::string_view option, double value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("schedule: ", option, " is ", value, "; allowed is ", allowed));
}

bool PositiveAndFinite(double value) { return value > 0 && std::isfinite(value); }

}  // namespace

// Each condition is written so that NaN is refused, too.
absl::Status CheckLearningRate(const LearningRateOptions& options) {
  if (!PositiveAndFinite(options.learning_rate)) {
    return OutOfRange("learning_rate", options.learning_rate, "learning_rate > 0");
  }
  if (!PositiveAndFinite(options.total_epochs)) {
    return OutOfRange("total_epochs", options.total_epochs, "total_epochs > 0");
  }
  if (!(options.warmup_epochs >= 0 && options.warmup_epochs < options.total_epochs)) {
    return OutOfRange("warmup_epochs", options.warmup_epochs,
                      absl::StrCat("0 <= warmup_epochs < total_epochs, which is ", options.total_epochs));
  }
  switch (options.name) {
    case LearningRateName::kConstant:
      return absl::OkStatus();
    case LearningRateName::kStep:
      if (!PositiveAndFinite(options.step_epochs)) {
        return OutOfRange("step_epochs", options.step_epochs, "step_epochs > 0");
      }
      if (!(options.step_factor > 0 && options.step_factor <= 1)) {
        return OutOfRange("step_factor", options.step_factor, "0 < step_factor <= 1");
      }
      return absl::OkStatus();
    case LearningRateName::kCosine:
      if (!(options.final_fraction >= 0 && options.final_fraction <= 1)) {
        return OutOfRange("final_fraction", options.final_fraction, "0 <= final_fraction <= 1");
      }
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("schedule: name number ", static_cast<int>(options.name),
                                                 " is not known; allowed are constant, step and cosine"));
}

double LearningRate(const LearningRateOptions& options, double epoch) {
  const double peak = options.learning_rate;
  const double at = std::min(epoch, options.total_epochs);
  if (at < options.warmup_epochs) return peak * at / options.warmup_epochs;
  switch (options.name) {
    case LearningRateName::kConstant:
      break;
    case LearningRateName::kStep: {
      // Callers compute `epoch` as a quotient, which rounding may put slightly below the boundary of a drop.
      const double drops = std::floor(at / options.step_epochs + 1e-9);
      return peak * std::pow(options.step_factor, drops);
    }
    case LearningRateName::kCosine: {
      const double done = (at - options.warmup_epochs) / (options.total_epochs - options.warmup_epochs);
      const double fall = 0.5 * (1 + std::cos(kPi * done));  // 1 at the peak, 0 at the end.
      return peak * (options.final_fraction + (1 - options.final_fraction) * fall);
    }
  }
  return peak;
}

}  // namespace hooke
