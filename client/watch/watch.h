#ifndef HOOKE_CLIENT_WATCH_WATCH_H_
#define HOOKE_CLIENT_WATCH_WATCH_H_

// Follows a job until it ends or is held, through restarts of the coordinator.

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
  // A coordinator that sends nothing for this long counts as away; it normally sends once a second. A broken connection
  // that cannot be restored is noticed at once.
  absl::Duration silence = absl::Seconds(3);
  // Watching ends after this long without the coordinator. Only time in which this process runs counts.
  absl::Duration patience = absl::Minutes(5);
  absl::Duration retry = absl::Milliseconds(300);  // Time between two attempts to reach the coordinator.
  absl::Duration poll = absl::Milliseconds(200);   // Interrupts are checked this often.
  absl::Duration redraw = absl::Seconds(1);
  std::function<absl::Time()> clock = absl::Now;
};

// Returns the job's last status: it has ended, or it is held. CANCELLED: interrupted. UNAVAILABLE: patience is over,
// but the job may go on. Otherwise the coordinator's error (NOT_FOUND: no such job). All arguments must outlive the
// call; `interrupts` may be null.
absl::StatusOr<v1::JobStatus> FollowJob(CoordinatorClient& coordinator, const std::string& job_id, WatchScreen& screen,
                                        Interrupts* interrupts, const WatchOptions& options);

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_WATCH_H_
