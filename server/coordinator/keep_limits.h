#ifndef HOOKE_SERVER_COORDINATOR_KEEP_LIMITS_H_
#define HOOKE_SERVER_COORDINATOR_KEEP_LIMITS_H_

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
  absl::Duration age;   // Time since its end, by the steady clock: a clock that is set must not forget jobs.
  uint64_t bytes = 0;   // Its center on disk, as far as servers have said; 0: none is known.
  bool may_go = false;  // False: it must stay for now.
};

struct ForgetDecision {
  uint64_t number = 0;
  std::string reason;  // "1000 others have ended since".
};

// Those that ended first go first. If one of them must stay for now, no younger one goes in its place. A job without a
// known center is not forgotten for the sake of bytes, because that would free nothing. Bytes are those of the jobs
// that are not forgotten for another reason.
std::vector<ForgetDecision> ChooseForgotten(std::vector<FinishedJob> jobs, const KeepLimits& limits);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_KEEP_LIMITS_H_
