#ifndef HOOKE_WORKER_REPORT_PROGRESS_METER_H_
#define HOOKE_WORKER_REPORT_PROGRESS_METER_H_

// How far a rank is and where its time goes: adds up phases and steps, and says so as a RankProgress. Pure: time comes
// in. Not thread-safe; the reporter guards it.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/worker.pb.h"

namespace hooke {

// One optimizer step of the group, done.
struct StepDone {
  uint64_t step = 0;  // Steps done by the group, this one included.
  double epoch = 0;
  float loss = 0;        // Mean over the group's samples of this step.
  uint64_t samples = 0;  // Of the whole group.
};

class ProgressMeter {
 public:
  // In phase STARTING.
  explicit ProgressMeter(absl::Time now) : phase_since_(now) {}

  // The phase is `phase` from now on; the time since the last call belongs to the one before.
  void Enter(v1::RankProgress::Phase phase, absl::Time now);

  // The run is known: where it begins and how many steps it has in all.
  struct Plan {
    uint64_t step = 0;
    uint64_t steps_total = 0;
    double epoch = 0;
  };
  void SetPlan(const Plan& plan);

  void AddStep(const StepDone& step, absl::Time now);
  void AddExchange(bool ok);
  void AddMissedByOthers();  // The last exchange, which was ok here, missed a server elsewhere in the group.
  // RankProgress.absent_servers.
  void SetAbsent(const std::string& address, std::optional<absl::Time> since);
  // Collectives ran beside the computation for so long.
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
  // Steps of about the last second, at least two where there were two. Evaluations between them take no time: a rate is
  // that of training.
  std::deque<Timed> recent_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_PROGRESS_METER_H_
