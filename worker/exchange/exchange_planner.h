#ifndef HOOKE_WORKER_EXCHANGE_EXCHANGE_PLANNER_H_
#define HOOKE_WORKER_EXCHANGE_EXCHANGE_PLANNER_H_

// Decides when a group exchanges and which part of the vector (ExchangePlan). Some rhythms need a fact that only rank 0
// has:
//
//   by time                     the time on rank 0's clock
//   by an adapted interval      the pace of the fastest group. Rank 0 asks the first server for it at each exchange
//                               (pace.h)
//   with fragments and rounds   the fragment whose turn it is. Rank 0 asks the first server for it, too. So groups that
//                               joined late or lagged behind exchange the same fragment as the others.
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

struct ExchangePlannerOptions {
  ExchangeRhythm rhythm;
  // If not zero, an exchange is due when this much time has passed on rank 0's clock. The interval in steps does not
  // count then.
  absl::Duration interval_time = absl::ZeroDuration();
  // True if the interval adapts to the group's pace: the fastest group has the job's interval, and slower groups have
  // shorter ones.
  bool adapts = false;
  uint64_t first_step = 0;  // The step from which the group goes on.
  bool in_rounds = false;   // Whether the job's rule has rounds.
  // Limit for asking the first server. If it does not answer, it delays an exchange by this long.
  absl::Duration ask_timeout = absl::Seconds(1);
  // Whether the first server is known to be away; rank 0 does not ask it then. May be empty.
  std::function<bool()> skips_first_server;
  std::function<absl::Time()> clock;
};

// Number of the arena's statistics that the planner uses.
inline constexpr uint64_t kExchangePlannerStatistics = 2;

class ExchangePlanner {
 public:
  // Group and center outlive the planner. A job without servers has no planner.
  ExchangePlanner(ExchangePlannerOptions options, const Group* group, const CenterClient* center);

  // A moment of training: the group has done `step` steps. `in_flight_since` is the step after which the exchange in
  // flight began, if there is one.
  struct Moment {
    uint64_t step = 1;
    std::optional<uint64_t> in_flight_since;
  };
  // Records how long a step of the group took, not counting exchanges.
  void NoteStepTime(absl::Duration took);

  // Writes this rank's kExchangePlannerStatistics values. Call it before the collective of the step that leads to
  // `moment`.
  void Propose(const Moment& moment, absl::Span<float> statistics);

  // Call it after the collective of that step, with the averaged statistics. All ranks get the same plan.
  ExchangePlan PlanAfter(const Moment& moment, absl::Span<const float> statistics) const;

  // Records that an exchange has begun after `step`.
  void Begun(uint64_t step, const ExchangePlan& plan);

 private:
  bool ByTime() const { return options_.interval_time != absl::ZeroDuration(); }
  // Whether rank 0 decides when an exchange is due; otherwise it follows from the number of steps.
  bool Decides() const { return ByTime() || options_.adapts; }
  bool InTurns() const { return options_.in_rounds && options_.rhythm.fragments > 1; }
  bool Due(uint64_t step) const;
  void Ask();

  const ExchangePlannerOptions options_;
  const Group* const group_;
  const CenterClient* const center_;

  // Only rank 0 reads the fields below.
  absl::Time last_time_;    // When the last exchange began; before the first one, when training began.
  uint64_t last_step_;      // The step after which the last exchange began.
  uint64_t interval_;       // Steps between two exchanges.
  uint32_t next_turn_ = 0;  // The next fragment, as far as this rank knows.
  // Recent steps and the time that they took, for the group's pace. Older steps count less.
  double steps_ = 0;
  absl::Duration busy_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_EXCHANGE_PLANNER_H_
