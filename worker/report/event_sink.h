#ifndef HOOKE_WORKER_REPORT_EVENT_SINK_H_
#define HOOKE_WORKER_REPORT_EVENT_SINK_H_

// Where a rank's events go: its node's daemon, or the log and the standard output of a rank that runs alone. Used by
// the reporter's thread.

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

  // One thread. May block while the receiver is slow; false once the receiver is gone.
  virtual bool Send(const v1::RankEvent& event) = 0;
  // No more events will come: lets the receiver take what was sent, for at most `timeout`. After Send's last call.
  virtual void Close(absl::Duration timeout) = 0;
  // Any thread: a Send that blocks returns.
  virtual void Cancel() = 0;
};

// The daemon's RankEvents service on a unix socket (absolute path). `on_broken` runs once, in a thread of the sink,
// when the stream ends before Close or Cancel: the daemon is gone.
std::unique_ptr<EventSink> DialDaemon(const std::string& socket, std::function<void(const std::string& why)> on_broken);

// Notices, evaluations and the end as they come, progress every few seconds.
std::unique_ptr<EventSink> MakeLogSink(std::shared_ptr<spdlog::logger> logger);

// Each event as one line of JSON, with the names of proto/worker.proto. `out` outlives the sink.
std::unique_ptr<EventSink> MakeJsonSink(std::ostream& out);

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_EVENT_SINK_H_
