#ifndef HOOKE_CLIENT_WATCH_WATCH_SCREEN_H_
#define HOOKE_CLIENT_WATCH_WATCH_SCREEN_H_

// Where a watched job is shown: drawn in place on a terminal, as plain lines, or as JSON lines. One thread.

#include <memory>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "client/watch/watch_view.h"
#include "proto/coordinator.pb.h"

namespace hooke {

class WatchScreen {
 public:
  virtual ~WatchScreen() = default;

  // The job's status, also when only time has passed. `now` is the coordinator's clock.
  virtual void Show(const v1::JobStatus& job, absl::Time now) = 0;
  // The coordinator, last heard at `since`, does not answer. Called once, then Back. `job`: the status shown last;
  // null: none yet. Both times are of this machine's clock.
  virtual void Away(const v1::JobStatus* job, absl::Time since, absl::Time now) = 0;
  // It answers again, after it was away since `since`. Show follows.
  virtual void Back(absl::Time since, absl::Time now) = 0;
};

// A terminal keeps the picture while the coordinator is away, dimmed. Where `out` is for programs, people read of it on
// `err`. Streams are the caller's and outlive the screen.
std::unique_ptr<WatchScreen> MakeTerminalScreen(std::ostream& out, WatchViewOptions options);
std::unique_ptr<WatchScreen> MakePlainScreen(std::ostream& out, WatchLogOptions options);
std::unique_ptr<WatchScreen> MakeJsonScreen(std::ostream& out, std::ostream& err);

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_WATCH_SCREEN_H_
