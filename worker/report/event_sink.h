#ifndef HOOKE_WORKER_REPORT_EVENT_SINK_H_
#define HOOKE_WORKER_REPORT_EVENT_SINK_H_

// Receivers of a rank's events: its node's daemon, or the log and the standard output of a rank that runs alone.

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "proto/worker.pb.h"

namespace spdlog {
class logger;
}

namespace hooke {

class EventSink {
 public:
  virtual ~EventSink() = default;

  // Called from one thread. May block while the receiver is slow; false once the receiver is gone.
  virtual bool Send(const v1::RankEvent& event) = 0;
  // Called after the last Send. Gives the receiver at most `timeout` to take the events that were sent.
  virtual void Close(absl::Duration timeout) = 0;
  // Lets a blocked Send return. Any thread may call it.
  virtual void Cancel() = 0;
  // Returns why the receiver wants the group to leave (RankCommand.leave); empty: it does not. Any thread may call it.
  virtual std::string LeaveReason() const { return ""; }
};

// Connects to the daemon's RankEvents service on a unix socket (absolute path). If the stream ends before Close or
// Cancel, the daemon is gone, and `on_broken` runs once, in a thread of the sink.
std::unique_ptr<EventSink> DialDaemon(const std::string& socket, std::function<void(const std::string& why)> on_broken);

// Logs notices, evaluations and the good end of the run as they come, and progress every few seconds.
std::unique_ptr<EventSink> MakeLogSink(std::shared_ptr<spdlog::logger> logger);

// Writes each event as one line of JSON, with the names of proto/worker.proto. `out` outlives the sink.
std::unique_ptr<EventSink> MakeJsonSink(std::ostream& out);

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_EVENT_SINK_H_
