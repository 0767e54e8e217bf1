#ifndef HOOKE_WORKER_RANK_TRAINER_H_
#define HOOKE_WORKER_RANK_TRAINER_H_

// The training of a rank. Every rank of the group runs one Trainer, in lockstep:
//
//   begin     attach to the center (or, without servers, take rank 0's values): all ranks hold the same vector; go on
//             from its step
//   step      batch -> forward, backward, gradients of all ranks, optimizer: group_step.h
//   exchange  when ExchangePlan says so: with the servers, answers at once or some steps later (group_exchange.h); then
//             all ranks hold the same vector again
//   evaluate  group 0, each `evaluate_every` epochs: the center, on the test samples
//   end       a last exchange, which every server must take and write to disk
//
// A rank that fails returns an error and ends, and its group ends with it. If all ranks must decide alike, for example
// whether the center is there, rank 0 decides and broadcasts. If a server misses an exchange, that concerns only its
// part of the slice, and the ranks need not agree. But no later exchange makes up for the last one. If a server misses
// the last exchange, the group fails, and is then started again.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/center_rule.h"
#include "algorithms/compression.h"
#include "algorithms/exchange_plan.h"
#include "algorithms/learning_rate.h"
#include "algorithms/optimizer.h"
#include "mpi_group/group.h"
#include "worker/data/sampler.h"
#include "worker/data/samples.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_schedule.h"
#include "worker/exchange/group_exchange.h"
#include "worker/model/arena.h"
#include "worker/model/model.h"
#include "worker/rank/group_step.h"
#include "worker/rank/rank_zero.h"
#include "worker/report/reporter.h"

namespace hooke {

// The objects that the trainer works with. All outlive it. While it runs, other threads may use only the reporter.
struct TrainerDependencies {
  Group* group = nullptr;
  Model* model = nullptr;  // Bound to the arena and initialized.
  const Arena* arena = nullptr;
  Sampler* sampler = nullptr;
  const Samples* train = nullptr;
  const Samples* test = nullptr;
  Reporter* reporter = nullptr;
  // Null: no servers. The group trains alone and evaluates its own values, at the end too.
  CenterClient* center = nullptr;
};

struct TrainerOptions {
  v1::Sender sender;
  uint32_t groups = 1;
  uint32_t batch = 1;  // Samples per rank and step.
  uint32_t epochs = 1;
  uint32_t evaluate_every = 0;  // Epochs between two evaluations; 0: no evaluation during training.
  // When the group exchanges (exchange_plan.h). The trainer sets its steps_total.
  ExchangeRhythm rhythm;
  // If not zero, the group exchanges when this much time has passed on rank 0's clock, instead of by the interval.
  absl::Duration interval_time = absl::ZeroDuration();
  // Whether slower groups exchange after fewer steps. rhythm.interval is then the fastest group's interval.
  bool adapts_interval = false;
  // Under kNone only group 0 exchanges, before evaluations of the center and at the end.
  RuleName rule = RuleName::kElastic;
  Encoding encoding;  // Encoding of the values that the group sends.
  // How much longer than exchange_timeout an exchange may take, because servers wait for other groups.
  absl::Duration grace = absl::ZeroDuration();
  // Whether servers may wait even longer than `grace`, until a quorum of the groups has come.
  bool awaits_quorum = false;
  GroupStepOptions group_step;
  OptimizerOptions optimizer;
  LearningRateOptions schedule;
  absl::Duration collective_timeout = absl::Seconds(30);
  absl::Duration exchange_timeout = absl::Seconds(5);
  // Limit for attaching, and again for reading the center. To each limit the TransferTime of the center is added.
  absl::Duration attach_timeout = absl::Seconds(60);
  std::function<absl::Time()> clock = absl::Now;
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

// Collective. Rank 0 reads the center; after OK all ranks hold it in `vector`. If servers cannot be reached, rank 0
// tries again until the call's timeout.
absl::Status PullInGroup(Group& group, CenterClient& center, const RankZeroCall& call, absl::Span<float> vector);

// Number of the arena's statistics that the trainer uses. They are the loss, rank 0's decision on the next exchange,
// whether a rank's last exchange missed a server, and whether a rank's exchanges skip a server now.
inline constexpr uint64_t kTrainerStatistics = kGroupStepStatistics + kExchangeScheduleStatistics + 2;

class Trainer {
 public:
  Trainer(const TrainerDependencies& deps, TrainerOptions options);

  // Trains from begin to end. Returns the steps done by the group, or one of these errors. After a collective's error
  // the group is unusable.
  //   INVALID_ARGUMENT, FAILED_PRECONDITION, ...  An error of a server, the model or the sampler; or the loss is not
  //   finite. ABORTED                                     This incarnation of the group has been replaced.
  //   DEADLINE_EXCEEDED, UNAVAILABLE              A peer or the servers did not answer.
  absl::StatusOr<uint64_t> Run();

 private:
  absl::StatusOr<uint64_t> Begin();
  absl::StatusOr<Attached> BeginFromCenter();
  absl::Status MakeGroupStep();
  void NoteFreshOptimizer(uint64_t first_step);
  void OpenExchange(const Attached& attached);
  absl::Status Step(uint64_t step);
  absl::Status Exchange(uint64_t step);
  void NoteMissed();
  absl::Status SaveCenter();
  absl::Status Evaluate(uint64_t step);
  absl::Status EvaluateCenter(uint64_t step);

  bool Exchanges() const;
  absl::Span<float> Proposal() const {
    return deps_.arena->statistics().subspan(kGroupStepStatistics, kExchangeScheduleStatistics);
  }
  float& Missed() const { return deps_.arena->statistics()[kGroupStepStatistics + kExchangeScheduleStatistics]; }
  float& Skips() const { return deps_.arena->statistics()[kGroupStepStatistics + kExchangeScheduleStatistics + 1]; }
  ExchangeSchedule::Moment MomentAt(uint64_t step) const;
  ExchangePlan PlanAfter(uint64_t step) const;
  bool EvaluationDue(uint64_t step) const;
  double Epoch(uint64_t step) const { return static_cast<double>(step) / static_cast<double>(steps_per_epoch_); }
  RankZeroCall CallFor(absl::Duration timeout) const;

  const TrainerDependencies deps_;
  const TrainerOptions options_;
  const uint64_t steps_per_epoch_;
  const uint64_t steps_total_;
  std::vector<float> pixels_;
  std::vector<int64_t> labels_;
  std::unique_ptr<GroupStep> group_step_;
  // Null if there is no center.
  std::unique_ptr<GroupExchange> exchange_;
  std::unique_ptr<ExchangeSchedule> schedule_;
  // At the last NoteMissed, some rank's exchanges skipped a server.
  bool group_skips_ = false;
  uint64_t exchanges_judged_ = 0;  // GroupExchange::finished() at the last NoteMissed.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_TRAINER_H_
