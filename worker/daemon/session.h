#ifndef HOOKE_WORKER_DAEMON_SESSION_H_
#define HOOKE_WORKER_DAEMON_SESSION_H_

// The worker's session with the coordinator, over one stream at a time. It sends hello, a heartbeat each second or a
// little earlier, events and log lines, and receives commands. Several messages share a write if the coordinator takes
// that. It reconnects until the coordinator refuses the worker for good. Events that
// the coordinator has not stored are sent again, so neither a broken network nor a restart of the coordinator loses
// any.
//
// One thread connects and writes; a second one, for each connection, reads. Callbacks run on these threads without a
// lock held, and must not block for long. Any thread may call AddEvent, AddLog, EndIsPending, Figures, Contact, Flush,
// AnnounceEnd and SayGoodbye.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/clock_offset.h"
#include "clocks/steady_condition.h"
#include "proto/coordinator.grpc.pb.h"
#include "spdlog/spdlog.h"
#include "wire/cluster_token.h"
#include "worker/daemon/cut_off.h"
#include "worker/daemon/outbox.h"
#include "worker/metrics/worker_metrics.h"

namespace hooke {

struct SessionOptions {
  std::string coordinator;    // host:port.
  CallCredential credential;  // May be empty.
  v1::WorkerHello hello;      // All fields but `running`.
  absl::Duration heartbeat_every = absl::Seconds(1);
  SendTimes times;
  absl::Duration welcome_within = absl::Seconds(10);
  // The first pause before reconnecting. It doubles with each failure in a row.
  absl::Duration backoff_min = absl::Milliseconds(200);
  absl::Duration backoff_max =
      absl::Seconds(1);  // Short, because people wait for news after a restart of the coordinator.
  OutboxOptions outbox;
  std::string machine;  // MachineClockName() of this machine; "" if it is not known.
  // Reads the monotonic clock of this machine, in nanoseconds, from any thread. Null: profiles get no offset.
  std::function<int64_t()> clock;
  std::shared_ptr<spdlog::logger> logger;  // Not null.
};

// The session's calls to the daemon.
struct SessionCallbacks {
  std::function<std::vector<v1::GroupId>()> running_groups;
  std::function<void(const v1::StartGroupCommand&)> start_group;
  std::function<void(const v1::StopGroup&)> stop_group;
  std::function<void(const v1::LaunchPart&)> launch_part;
  std::function<void()> welcomed;  // Called once, after the first welcome.
  // Called at most once, before any welcome, if the coordinator refuses this worker for good. The session does not try
  // again.
  std::function<void(const absl::Status&)> refused;
};

class Session {
 public:
  Session(SessionOptions options, SessionCallbacks callbacks);
  // Ends the stream. Events that were not flushed are lost.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Starts connecting. Called once; callbacks may come from then on.
  void Start();

  void AddEvent(const v1::GroupId& group, v1::GroupEvent event);
  void AddLog(const v1::GroupId& group, absl::string_view source, absl::string_view text);
  // Returns whether the group has ended, but the coordinator has not stored its end yet.
  bool EndIsPending(const v1::GroupId& group);
  SessionFigures Figures();
  // Without SessionOptions::clock the lease is not known.
  CoordinatorContact Contact();

  // Waits until the coordinator has all events and was sent all log lines. Gives up at `deadline`, a SteadyTime(), or
  // when the session is not connected. Returns whether nothing is left.
  bool Flush(absl::Time deadline);
  // Tells the coordinator, on this stream and on later ones, that this worker is about to end (WorkerEnds). Returns at
  // once.
  void AnnounceEnd();
  // If all was sent and the session is connected, tells the coordinator that this worker ends now. Then waits for the
  // stream's end, at most until `deadline`, a SteadyTime(). The session does not connect again.
  void SayGoodbye(absl::Time deadline);

 private:
  using Stream = grpc::ClientReaderWriter<v1::WorkerMessage, v1::WorkerCommand>;
  enum class Link { kDown, kConnecting, kWelcomed };

  // How one connection ended.
  struct StreamEnd {
    absl::Status status;  // Never OK.
    bool welcomed = false;
  };

  void Run();
  StreamEnd RunStream();  // Runs one stream, from hello to its end.
  bool WriteHello(Stream& stream);
  bool AwaitWelcome();
  bool AwaitDown();
  void WriteUntilBroken(Stream& stream);
  // Waits until it is time to write. `announced`: this stream has had its WorkerEnds. Times are steady.
  void AwaitWork(bool announced, absl::Time next_heartbeat) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the messages, and a heartbeat behind them if `heartbeat`. False: the stream is broken.
  bool Write(Stream& stream, std::vector<v1::WorkerMessage> messages, bool heartbeat);
  void Read(Stream& stream);
  void HandleCommand(const v1::WorkerCommand& command);
  void HandleWelcome(const v1::Welcome& welcome);
  // Notes that the coordinator heard this worker at this steady time or later, or was not running then.
  void NoteContact(absl::Time heard);
  void HandleClock(const v1::ClockEcho& echo);
  // Adds when the event happened, by the coordinator's clock, if that is known and of use.
  void AddTime(v1::GroupEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddClock(v1::RankProfile& profile) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool is_ending();
  bool was_welcomed();
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // Signals both conditions.

  const SessionOptions options_;
  const SessionCallbacks callbacks_;
  absl::Mutex mutex_;
  // A clock that is set back must not delay what waits for them.
  SteadyCondition work_;     // Signalled when AwaitWork may have to return.
  SteadyCondition changed_;  // Signalled when link_, shutdown_ or whether the outbox is empty may have changed.
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  ClockOffset clock_offset_ ABSL_GUARDED_BY(mutex_);
  Link link_ ABSL_GUARDED_BY(mutex_) = Link::kDown;
  bool ever_welcomed_ ABSL_GUARDED_BY(mutex_) = false;
  bool batches_ ABSL_GUARDED_BY(mutex_) = false;    // The coordinator takes WorkerMessage.batch.
  SessionFigures figures_ ABSL_GUARDED_BY(mutex_);  // `connected` is not kept up to date.
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;       // AnnounceEnd was called.
  CoordinatorContact contact_ ABSL_GUARDED_BY(mutex_);
  absl::Time hello_sent_ ABSL_GUARDED_BY(mutex_);  // Steady: when the stream's hello was about to be sent.
  bool goodbye_ ABSL_GUARDED_BY(mutex_) = false;   // SayGoodbye was called.
  bool shutdown_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Context of the stream, while there is one.
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_SESSION_H_
