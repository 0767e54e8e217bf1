#ifndef HOOKE_WORKER_REPORT_REPORTER_H_
#define HOOKE_WORKER_REPORT_REPORTER_H_

// Sends a rank's reports. One thread sends the rank's progress twice a second, even while the trainer is stuck, and
// passes on events as they come. The trainer calls it at each step and never waits for it: events beyond a bound are
// dropped, oldest notices first. Thread-safe.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "clocks/steady_condition.h"
#include "clocks/steady_time.h"
#include "mpi_group/profile/profile.h"
#include "proto/worker.pb.h"
#include "worker/report/event_sink.h"
#include "worker/report/progress_meter.h"
#include "worker/report/start_spans.h"

namespace hooke {

struct ReporterOptions {
  v1::RankHello hello;
  std::vector<std::unique_ptr<EventSink>> sinks;
  absl::Duration interval = absl::Milliseconds(500);  // Between two progress events.
  absl::Duration close_timeout = absl::Seconds(2);
  std::shared_ptr<ProfileRecorder> profile;  // Learns the phases; its profile is sent. May be null.
  // The time between the first two profiles. The first one comes after 1/5 of it. Each profile doubles the time to the
  // next one, up to the maximum. Profiles change ever less, and the coordinator of a large cluster gets those of all
  // ranks.
  absl::Duration profile_interval = absl::Seconds(5);
  absl::Duration profile_interval_max = absl::Seconds(30);
  std::function<absl::Time()> clock = SteadyTime;
  // The times of the rank's start so far. Rank 0 reports them after its first step.
  StartSpans start = {};
};

class Reporter {
 public:
  // Sends hello.
  explicit Reporter(ReporterOptions options);
  // Sends the queued events. After close_timeout it cancels the sinks.
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void Enter(v1::RankProgress::Phase phase);
  // Begins a part of the time before the first step that phases do not tell apart.
  void BeginStart(v1::LifeSpan::What what);
  void SetPlan(const ProgressMeter::Plan& plan);
  void ReportStep(const StepDone& step);
  // The rank exchanges with so many servers (RankProgress.servers).
  void SetServers(size_t servers);
  void AddExchange(bool ok);
  // The center has the group's work up to this step (RankProgress.exchanged_step).
  void SetExchanged(uint64_t step);
  // How far the group was from the center (RankProgress.center_distance).
  void SetCenterDistance(double distance);
  // The last exchange was ok on this rank, but another rank of the group missed a server.
  void AddMissedByOthers();
  // Exchanges have missed the server since `since`; nullopt: it is back.
  void SetAbsent(const std::string& address, std::optional<absl::Time> since);
  void AddOverlapped(absl::Duration time);
  // Sets one of the program's own metrics (job/metric.h), which each progress has from then on. Errors are those of
  // SetMetric there.
  absl::Status SetMetric(absl::string_view name, double value);

  void Notice(std::string text);
  void NoticeSetback(std::string text);  // A notice with RankNotice.setback set.
  void Evaluated(const v1::CenterEvaluated& evaluated);
  void Links(const v1::MeasuredLinks& links);
  // Failed and Done each send the last event, with a last progress and profile before it. Only one of them is called.
  void Failed(const absl::Status& status);
  void Done(uint64_t step);

  v1::RankProgress Progress() const;
  // Returns why a sink wants the group to leave (EventSink::LeaveReason); empty: none does.
  std::string LeaveReason() const;

 private:
  void Run();
  void Queue(v1::RankEvent event) ABSL_LOCKS_EXCLUDED(mutex_);
  void Push(v1::RankEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueLast(v1::RankEvent event);
  v1::RankEvent ProgressEvent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns nullopt before the first collective.
  std::optional<v1::RankEvent> ProfileEvent() const ABSL_LOCKS_EXCLUDED(mutex_);

  ReporterOptions options_;

  mutable absl::Mutex mutex_;
  ProgressMeter meter_ ABSL_GUARDED_BY(mutex_);
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;  // The last completed step.
  StartSpans start_ ABSL_GUARDED_BY(mutex_);
  bool stepped_ ABSL_GUARDED_BY(mutex_) = false;  // The first step of this process is done.
  std::deque<v1::RankEvent> queue_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Signalled after a change of the three above. A clock that is set back must not delay reports.
  SteadyCondition changed_;

  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_REPORTER_H_
