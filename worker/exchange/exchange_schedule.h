#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_SCHEDULE_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_SCHEDULE_H_

// Decides when a group exchanges and which part of the vector (ExchangePlan). Some rhythms need a fact that only rank 0
// has:
//
//   by time                     the time on its clock
//   by an adapted interval      the pace of the fastest group, for which it asks the first server at each exchange
//                               (pace.h)
//   with fragments and rounds   the fragment whose turn it is, for which it asks, too. So groups that joined late or
//                               lagged behind exchange the same fragment as the others.
//
// Rank 0 decides before a step. The step's collective, which averages the arena's statistics, tells the other ranks.

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/exchange_plan.h"
#include "mpi_group/group.h"
#include "worker/exchange/center_client.h"

namespace hooke {

struct ExchangeScheduleOptions {
  ExchangeRhythm rhythm;
  // If not zero, an exchange is due when this much time has passed on rank 0's clock. The interval does not count then.
  absl::Duration interval_time = absl::ZeroDuration();
  bool adapts = false;      // The interval is the fastest group's; slower groups have a shorter one.
  uint64_t first_step = 0;  // The step from which the group goes on.
  bool in_rounds = false;   // The job's rule has rounds.
  absl::Duration ask_timeout = absl::Seconds(1);  // How long a silent server may hold up an exchange.
  // Whether the first server is known to be away; it is not asked then. May be empty.
  std::function<bool()> skips_first_server;
  std::function<absl::Time()> clock;
};

// Number of the arena's statistics that the schedule uses.
inline constexpr uint64_t kExchangeScheduleStatistics = 2;

class ExchangeSchedule {
 public:
  // `center` is null if the job has no servers; the schedule is not asked then. Group and center outlive the schedule.
  ExchangeSchedule(ExchangeScheduleOptions options, const Group* group, const CenterClient* center);

  // The group after `step` steps. `in_flight_since` is the step after which the exchange in flight began, if there is
  // one.
  struct Moment {
    uint64_t step = 1;
    std::optional<uint64_t> in_flight_since;
  };
  // Records how long a step of the group took, not counting exchanges.
  void NoteStepTime(absl::Duration took);

  // Call it before the collective of the step that leads to `moment`. Writes this rank's kExchangeScheduleStatistics
  // values.
  void Propose(const Moment& moment, absl::Span<float> statistics);

  // Call it after that collective, with its result. All ranks get the same plan.
  ExchangePlan PlanAfter(const Moment& moment, absl::Span<const float> statistics) const;

  // Records that an exchange has begun after `step`.
  void Begun(uint64_t step, const ExchangePlan& plan);

 private:
  bool ByTime() const { return options_.interval_time != absl::ZeroDuration(); }
  // Whether rank 0, not the step alone, decides when an exchange is due.
  bool Decides() const { return ByTime() || options_.adapts; }
  bool InTurns() const { return options_.in_rounds && options_.rhythm.fragments > 1; }
  bool Due(uint64_t step) const;
  void Ask();

  const ExchangeScheduleOptions options_;
  const Group* const group_;
  const CenterClient* const center_;

  // Only rank 0 uses these.
  absl::Time last_time_;    // When the last exchange began; before the first one, when training began.
  uint64_t last_step_;      // The step after which it began.
  uint64_t interval_;       // Steps between two exchanges.
  uint32_t next_turn_ = 0;  // The next fragment, as far as rank 0 knows.
  // Recent steps and the time that they took, for the group's pace. Older steps count less.
  double steps_ = 0;
  absl::Duration busy_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_SCHEDULE_H_
