#include "mpi_group/cuda/polling.h"

#include <sched.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {

absl::Duration NapAfter(absl::Duration waited) {
  constexpr int kShare = 50;
  if (waited < absl::Milliseconds(2)) return absl::ZeroDuration();
  return std::min(waited / kShare, absl::Milliseconds(1));
}

absl::Status PollUntil(absl::Time deadline, absl::string_view what, const std::function<absl::StatusOr<bool>()>& done,
                       const std::function<absl::Status()>& healthy) {
  const absl::Time start = SteadyNow();
  while (true) {
    const absl::StatusOr<bool> is_done = done();
    if (!is_done.ok()) return is_done.status();
    if (*is_done) return absl::OkStatus();
    const absl::Time now = SteadyNow();
    const absl::Duration nap = std::min(NapAfter(now - start), deadline - now);
    if (nap > absl::ZeroDuration() || now >= deadline) {
      absl::Status status = healthy();
      if (!status.ok()) return status;
    }
    if (now >= deadline) return absl::DeadlineExceededError(absl::StrCat("waited for ", what, " until the deadline"));
    if (nap > absl::ZeroDuration()) {
      absl::SleepFor(nap);
    } else {
      sched_yield();
    }
  }
}

}  // namespace hooke
