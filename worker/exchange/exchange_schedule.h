#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_SCHEDULE_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_SCHEDULE_H_

// When a group exchanges, and what: ExchangePlan, with what only rank 0 can know:
//
//   by time                     its clock
//   by an adapted interval      how fast the fastest group is, which it asks the first server at each exchange (pace.h)
//   with fragments and rounds   whose turn it is, which it asks, too, so that groups that joined late or lagged behind
//                               exchange the same fragment as the others
//
// Rank 0 decides before a step, and the step's collective, which averages the arena's statistics, tells the others.
// Used by the trainer alone.

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
  // Not zero: an exchange is due when so much time has passed by rank 0's clock, instead of by the interval.
  absl::Duration interval_time = absl::ZeroDuration();
  bool adapts = false;                            // The interval is the fastest group's; a slower one's is shorter.
  uint64_t first_step = 0;                        // The group goes on from there.
  bool in_rounds = false;                         // The job's rule has rounds.
  absl::Duration ask_timeout = absl::Seconds(1);  // How long a silent server may hold up an exchange.
  // Whether the first server is known to be away, and so is not asked. May be empty.
  std::function<bool()> skips_first_server;
  std::function<absl::Time()> clock;
};

// Values in the statistics.
inline constexpr uint64_t kScheduleStatistics = 2;

class ExchangeSchedule {
 public:
  // `center` is null without servers; the schedule is not asked then. All outlive it.
  ExchangeSchedule(ExchangeScheduleOptions options, const Group* group, const CenterClient* center);

  // Where the group is: how many steps it has done, or will have, and what is in flight.
  struct Moment {
    uint64_t step = 1;
    std::optional<uint64_t> in_flight_since;
  };
  // A step of the group has taken so long, without exchanges.
  void AddStep(absl::Duration took);

  // Before the collective of the step that leads to `moment`: what this rank has to say, of kScheduleStatistics values.
  void Propose(const Moment& moment, absl::Span<float> statistics);

  // After it, the same on all ranks.
  ExchangePlan PlanAfter(const Moment& moment, absl::Span<const float> statistics) const;

  // One has begun after `step`.
  void Begun(uint64_t step, const ExchangePlan& plan);

 private:
  bool ByTime() const { return options_.interval_time != absl::ZeroDuration(); }
  // Rank 0 says when one is due, not the step alone.
  bool Decides() const { return ByTime() || options_.adapts; }
  bool InTurns() const { return options_.in_rounds && options_.rhythm.fragments > 1; }
  bool Due(uint64_t step) const;
  void Ask();

  const ExchangeScheduleOptions options_;
  const Group* const group_;
  const CenterClient* const center_;

  // Rank 0's. When an exchange last began, or training did;
  absl::Time last_time_;
  uint64_t last_step_;
  uint64_t interval_;       // Steps between two exchanges.
  uint32_t next_turn_ = 0;  // as far as it knows;
  // and how fast the group has been of late.
  double steps_ = 0;
  absl::Duration busy_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_SCHEDULE_H_
