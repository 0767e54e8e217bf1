#include "server/scheduling/pace.h"

namespace hooke {
namespace {

// The first steps are often slow, so a shorter time says little.
constexpr absl::Duration kWorkedMin = absl::Seconds(5);

}  // namespace

std::optional<absl::Duration> TimeLeft(const Pace& pace) {
  if (pace.worked < kWorkedMin || pace.step <= pace.first_step || pace.steps_total < pace.step) return std::nullopt;
  const auto done = static_cast<double>(pace.step - pace.first_step);
  const auto left = static_cast<double>(pace.steps_total - pace.step);
  return left / done * pace.worked;
}

}  // namespace hooke
