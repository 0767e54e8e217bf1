#include "server/scheduling/straggler.h"

#include <algorithm>
#include <cstddef>

namespace hooke {

bool StepWork::Note(absl::Duration now, uint64_t step, absl::Duration work, const StragglerOptions& options) {
  const bool begins = !began_.has_value() || step < began_->step || work < began_->work;
  if (!begins && (now - began_->at < options.window || step - began_->step < options.steps_min)) return false;
  if (!begins) of_a_step_ = (work - began_->work) / static_cast<double>(step - began_->step);
  began_ = Report{now, step, work};
  return !begins;
}

absl::Duration Median(std::vector<absl::Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace hooke
