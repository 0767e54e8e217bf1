#ifndef HOOKE_CLIENT_WATCH_WATCH_SCREEN_H_
#define HOOKE_CLIENT_WATCH_WATCH_SCREEN_H_

// Shows a watched job: drawn in place on a terminal, as plain lines, or as JSON lines. Only one thread may use it.

#include <memory>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "client/history/loss_chart.h"
#include "client/watch/watch_view.h"
#include "proto/coordinator.pb.h"

namespace hooke {

class WatchScreen {
 public:
  virtual ~WatchScreen() = default;

  // Shows the job's status. It is also called when only time has passed. `now` is the coordinator's clock.
  virtual void Show(const v1::JobStatus& job, absl::Time now) = 0;
  // Called once when the coordinator does not answer; Back is called before the next Away. The coordinator was last
  // heard at `since`. `job` is the last shown status, or null if there is none. `since` and `now` are on this machine's
  // clock.
  virtual void Away(const v1::JobStatus* job, absl::Time since, absl::Time now) = 0;
  // The coordinator answers again after being away since `since`. A Show follows.
  virtual void Back(absl::Time since, absl::Time now) = 0;
};

// Make a screen of one kind. A terminal with room for it gets a chart of the loss, too; `chart` has what was reported
// before. While the coordinator is away, a terminal keeps the picture, dimmed. If `out` is for
// programs, messages for people go to `err`. The streams must outlive the screen.
std::unique_ptr<WatchScreen> MakeTerminalScreen(std::ostream& out, WatchViewOptions options,
                                                LossChart chart = LossChart());
std::unique_ptr<WatchScreen> MakePlainScreen(std::ostream& out, WatchLogOptions options);
std::unique_ptr<WatchScreen> MakeJsonScreen(std::ostream& out, std::ostream& err);

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_WATCH_SCREEN_H_
