#ifndef HOOKE_CLIENT_WATCH_WATCH_H_
#define HOOKE_CLIENT_WATCH_WATCH_H_

// Follows a job to its end, through restarts of the coordinator. Used by `hooke watch` and `hooke submit --watch`.

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/coordinator_client.h"
#include "client/process/interrupts.h"
#include "client/watch/watch_screen.h"

namespace hooke {

struct WatchOptions {
  // A coordinator that says nothing for so long counts as away. It speaks once a second; a connection that breaks and
  // cannot be made again is noticed at once.
  absl::Duration silence = absl::Seconds(3);
  absl::Duration patience = absl::Minutes(5);      // After so long, while this process runs, it is given up.
  absl::Duration retry = absl::Milliseconds(300);  // Between two tries to reach it: its return is noticed so soon.
  absl::Duration poll = absl::Milliseconds(200);   // How soon an interrupt is noticed.
  absl::Duration redraw = absl::Seconds(1);
  std::function<absl::Time()> clock = absl::Now;
};

// The job's last status. CANCELLED: interrupted. UNAVAILABLE: patience is over; the job may go on. Else the
// coordinator's error (NOT_FOUND: no such job). All arguments outlive the call; `interrupts` may be null.
absl::StatusOr<v1::JobStatus> FollowJob(CoordinatorClient& coordinator, const std::string& job_id, WatchScreen& screen,
                                        Interrupts* interrupts, const WatchOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_WATCH_H_
