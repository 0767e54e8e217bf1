#include "clocks/cores_used.h"

#include <ctime>

namespace hooke {

absl::Duration ProcessCpuTime() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

double CoresUsed::Add(absl::Time now, absl::Duration cpu_time) {
  seen_.emplace_back(now, cpu_time);
  while (seen_.size() > 2 && seen_[1].first <= now - window_) seen_.pop_front();
  const auto [since, cpu_time_then] = seen_.front();
  if (since >= now) return 0;
  return absl::FDivDuration(cpu_time - cpu_time_then, now - since);
}

}  // namespace hooke
