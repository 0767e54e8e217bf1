#ifndef HOOKE_SERVER_CLUSTER_KEEP_LIMITS_H_
#define HOOKE_SERVER_CLUSTER_KEEP_LIMITS_H_

// Which finished jobs are forgotten so that the others stay within the limits of number, age and bytes? Knows no clock,
// store or servers.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hooke {

struct KeepLimits {
  size_t jobs_max = 1000;                                     // Finished jobs.
  absl::Duration age_max = absl::InfiniteDuration();          // Time since a job's end.
  uint64_t bytes_max = std::numeric_limits<uint64_t>::max();  // Centers of finished jobs, on all servers together.

  bool AreNumberOnly() const {
    return age_max == absl::InfiniteDuration() && bytes_max == std::numeric_limits<uint64_t>::max();
  }
};

struct FinishedJob {
  uint64_t number = 0;
  // Time since its end, by the steady clock: if somebody sets the wall clock, no job may be forgotten for that.
  absl::Duration age;
  uint64_t bytes = 0;   // Bytes of its center on disk, as servers last listed them; 0: no server listed any.
  bool may_go = false;  // False: the job must not be forgotten yet.
};

struct ForgetDecision {
  uint64_t number = 0;
  std::string reason;  // "1000 others have ended since".
};

// Chooses the jobs to forget, those that ended first before others. If such a job may not be forgotten yet, no job that
// ended later is forgotten in its place. The limit of bytes counts only jobs that stay within the limits of number and
// age. It never selects a job without a known center, because that would free nothing.
std::vector<ForgetDecision> ChooseForgotten(std::vector<FinishedJob> jobs, const KeepLimits& limits);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_KEEP_LIMITS_H_
