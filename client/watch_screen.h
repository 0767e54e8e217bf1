#ifndef HOOKE_CLIENT_WATCH_SCREEN_H_
#define HOOKE_CLIENT_WATCH_SCREEN_H_

// Where a watched job is shown: drawn in place on a terminal, as plain lines, or as JSON lines. One thread.

#include <memory>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "client/watch_view.h"
#include "proto/coordinator.pb.h"

namespace hooke {

class WatchScreen {
 public:
  virtual ~WatchScreen() = default;

  // The job's status, also when only time has passed. `now` is the coordinator's clock.
  virtual void Show(const v1::JobStatus& job, absl::Time now) = 0;
  // Something to read besides: the coordinator does not answer.
  virtual void Say(const std::string& text) = 0;
};

// Streams are the caller's and outlive the screen. Said things go to `err` where `out` is not for people.
std::unique_ptr<WatchScreen> MakeTerminalScreen(std::ostream& out, WatchViewOptions options);
std::unique_ptr<WatchScreen> MakePlainScreen(std::ostream& out, WatchLogOptions options);
std::unique_ptr<WatchScreen> MakeJsonScreen(std::ostream& out, std::ostream& err);

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_SCREEN_H_
