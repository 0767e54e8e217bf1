#ifndef HOOKE_WORKER_REPORT_PROGRESS_METER_H_
#define HOOKE_WORKER_REPORT_PROGRESS_METER_H_

// Measures how far a rank is and where its time goes. It adds up phases and steps, and reports them as a RankProgress.
// Pure: the caller passes the time. Not thread-safe; the reporter guards it.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/worker.pb.h"

namespace hooke {

// One completed optimizer step of the group.
struct StepDone {
  uint64_t step = 0;  // Steps done by the group, this one included.
  double epoch = 0;
  float loss = 0;        // Mean over the group's samples of this step.
  uint64_t samples = 0;  // Samples of the whole group.
};

class ProgressMeter {
 public:
  // Starts in phase STARTING.
  explicit ProgressMeter(absl::Time now) : phase_since_(now) {}

  // Begins `phase`. The time since the last call belongs to the previous phase.
  void Enter(v1::RankProgress::Phase phase, absl::Time now);

  // The step and epoch at which the run begins, and its total number of steps.
  struct Plan {
    uint64_t step = 0;
    uint64_t steps_total = 0;
    double epoch = 0;
  };
  void SetPlan(const Plan& plan);

  void ReportStep(const StepDone& step, absl::Time now);
  // The center has the group's work up to this step.
  void SetExchanged(uint64_t step) { progress_.set_exchanged_step(step); }
  void SetCenterDistance(double distance) { progress_.set_center_distance(distance); }
  void SetServers(size_t servers) { progress_.set_servers(static_cast<uint32_t>(servers)); }
  void AddExchange(bool ok);
  void AddMissedByOthers();  // The last exchange was ok on this rank, but another rank of the group missed a server.
  // The server has been absent since `since`; nullopt: it is back.
  void SetAbsent(const std::string& address, std::optional<absl::Time> since);
  // Sets one of the program's own metrics (job/metric.h). Errors are those of SetMetric.
  absl::Status SetMetric(absl::string_view name, double value);
  // Adds time in which collectives and computation ran at once.
  void AddOverlapped(absl::Duration time) { overlapped_ += time; }

  v1::RankProgress Snapshot(absl::Time now) const;

 private:
  struct Timed {
    absl::Time at;
    uint64_t samples = 0;
    float loss = 0;
  };

  v1::RankProgress progress_;
  absl::Time phase_since_;
  absl::Duration compute_;
  absl::Duration collective_;
  absl::Duration exchange_;
  absl::Duration overlapped_;
  std::map<std::string, absl::Time> absent_;
  // The steps of about the last second, and always the last two. The time of evaluations between them does not count,
  // so that the rate is the rate of training.
  std::deque<Timed> recent_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_PROGRESS_METER_H_
