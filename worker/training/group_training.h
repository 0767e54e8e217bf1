#ifndef HOOKE_WORKER_TRAINING_GROUP_TRAINING_H_
#define HOOKE_WORKER_TRAINING_GROUP_TRAINING_H_

// A rank's part in the training of its group. The model and the data belong to the caller. The callers are the built-in
// trainer (worker/rank/trainer.h) and the C interface (worker/api/hooke.h). This is the main header of the folder.
// Every rank of the group makes the same calls, in lockstep:
//
//   Begin      attach to the center (or, without servers, take rank 0's values): all ranks hold the same vector
//   each step:
//     BeginStep, then the hooks during forward and backward
//     Combine    mean gradients of all ranks; the group's optimizer, if it has one here
//     EndStep    count the step; exchange with the servers when ExchangePlan says so (group_exchange.h)
//   WithCenter   look at the center, between two steps
//   Stop         say that the whole job is to stop; `stopping` then tells all ranks of all groups
//   LeaveIfAsked  end this start of the group without loss, because its worker wants that
//   Finish     a last exchange, which every server must take and write to disk
//
// A rank that fails returns an error and ends, and its group ends with it. Where all ranks must decide alike, they
// learn the decision from a collective. For example, rank 0 finds out whether the center exists, and broadcasts it. If
// a server misses an exchange, that concerns only the server's part of a rank's slice, and the ranks need not agree. No
// later exchange makes up for the last one. If a server misses the last one, the group fails, and is then started
// again.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/center_rule.h"
#include "algorithms/compression.h"
#include "algorithms/exchange_plan.h"
#include "algorithms/optimizer.h"
#include "algorithms/sharding.h"
#include "clocks/steady_time.h"
#include "mpi_group/group.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_planner.h"
#include "worker/exchange/group_exchange.h"
#include "worker/model/arena.h"
#include "worker/model/model.h"
#include "worker/model/model_layout.h"
#include "worker/report/progress_meter.h"
#include "worker/report/reporter.h"
#include "worker/training/group_state.h"
#include "worker/training/group_step.h"
#include "worker/training/narrow_tensors.h"
#include "worker/training/rank_zero.h"

namespace hooke {

// All these objects outlive the GroupTraining. While it is used, other threads may use only the reporter.
struct GroupTrainingDependencies {
  Group* group = nullptr;
  const ModelLayout* layout = nullptr;
  const Arena* arena = nullptr;  // The arena has the layout's sizes, and at least kTrainingStatistics statistics.
  Reporter* reporter = nullptr;
  // Null: there are no servers, and the group trains alone.
  CenterClient* center = nullptr;
  // The model's 16-bit tensors; null if all are float32. The training gathers and scatters them where it reads and
  // writes the vector. GroupTrainingOptions::optimizer must then be nullopt.
  NarrowTensors* narrow = nullptr;
};

// The steps_total of a training whose length is not known.
inline constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();

struct GroupTrainingOptions {
  v1::Sender sender;
  // The present generation of the job, as in GroupStart.
  uint64_t first_step = 0;
  uint32_t first_incarnation = 0;
  bool is_new = false;
  // When the group exchanges (exchange_plan.h), and how many steps it makes in all.
  ExchangeRhythm rhythm;
  // If not zero, the group exchanges when this much time has passed on rank 0's clock, instead of by the interval.
  absl::Duration interval_time = absl::ZeroDuration();
  // Whether slower groups exchange after fewer steps. rhythm.interval is then the fastest group's interval.
  bool adapts_interval = false;
  // Under kNone only group 0 exchanges, where `publishes` says so and at the end.
  RuleName rule = RuleName::kElastic;
  Encoding encoding;  // Encoding of the values that the group sends.
  // How much longer than exchange_timeout an exchange may take, because servers wait for other groups.
  absl::Duration grace = absl::ZeroDuration();
  // Whether servers may wait even longer than `grace`, until a quorum of the groups has come.
  bool awaits_quorum = false;
  GroupStepOptions group_step;
  // The group's own optimizer. It is not used by rules under which the servers step. nullopt: the caller changes the
  // parameters itself, between Combine and EndStep.
  std::optional<OptimizerOptions> optimizer = OptimizerOptions();
  uint32_t groups = 1;  // Groups of the job.
  uint32_t slices = 0;  // GroupExchangeOptions::slices.
  // GroupStateOptions::interval; 0: no state is kept.
  absl::Duration state_interval = absl::Seconds(30);
  // Whether rank 0 asks the first server about once a second whether another group has called Stop.
  bool learns_of_stops = false;
  // Returns whether the center is read after this step, for example to evaluate it; null: it never is. Under kNone
  // group 0 exchanges before that.
  std::function<bool(uint64_t step)> publishes;
  absl::Duration collective_timeout = absl::Seconds(30);
  absl::Duration exchange_timeout = absl::Seconds(5);
  // Limit for attaching, and again for reading the center. To each limit the TransferTime of the center is added.
  absl::Duration attach_timeout = absl::Seconds(60);
  std::function<absl::Time()> clock = SteadyTime;
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

// Reads the center for all ranks. Collective. Rank 0 reads it, and after OK all ranks hold it in `vector`. If servers
// cannot be reached, rank 0 tries again until the call's timeout.
absl::Status PullInGroup(Group& group, CenterClient& center, const RankZeroCall& call, absl::Span<float> vector);

// Number of the arena's statistics that a training uses, from the first on. They are the loss, rank 0's decision on the
// next exchange, whether a rank's last exchange missed a server, whether a rank's exchanges skip a server now, whether
// the job is to stop, whether the group is to leave, and how far it is from the center. Those of the group's state
// follow. The caller may have more statistics after these, which Combine averages over the ranks, too.
inline constexpr uint64_t kTrainingStatistics =
    kGroupStepStatistics + kExchangePlannerStatistics + 6 + kGroupStateStatistics;

class GroupTraining {
 public:
  GroupTraining(const GroupTrainingDependencies& deps, GroupTrainingOptions options);

  // Begins training. Collective, once. Returns the step from which the group goes on. That is the step of its last
  // exchange that all servers have, or first_step if it made none in this generation. If it goes on from its own
  // values, which the servers kept in this generation, it is the step of those values.
  // Errors are those of the servers and of the group.
  absl::StatusOr<uint64_t> Begin();

  // Returns whether parameters change on the ranks, not on the servers (GroupRule::StepsLocally). Valid after Begin.
  bool StepsLocally() const { return exchange_ == nullptr || exchange_->StepsLocally(); }

  // Returns the hooks for the model (GroupStep::Hooks). Valid after Begin.
  BatchHooks Hooks() { return group_step_->Hooks(); }

  // Begins a step (GroupStep::Begin).
  void BeginStep();
  // Calls GroupStep::GradientReady, for a program that does not use Hooks.
  void GradientReady(size_t parameter) { group_step_->GradientReady(parameter); }

  // Collective. Combines gradients, buffers and the loss, and steps the optimizer. Returns the ranks' mean loss. A step
  // that EndStep does not count has no other effect.
  absl::StatusOr<float> Combine(float loss, double learning_rate);

  // Returns whether the next EndStep reads or changes the arena's vector. The result is the same on all ranks. Valid
  // between Combine and EndStep. A caller that keeps its values elsewhere copies them if it is so.
  bool EndStepUsesVector() const;

  // Collective. Counts a step whose gradients are combined: done.step is the number of steps with this one. Exchanges
  // with the center if it is time.
  absl::Status EndStep(const StepDone& done);

  // Returns whether the group's own state (group_state.h) after the last step is to be kept. The result is the same on
  // all ranks. Valid after Begin and after EndStep.
  bool StateDue() const { return state_ != nullptr && state_->due(); }
  // Keeps the state that is due. It has the state of the group's optimizer, if Hooke steps one here, and the caller's
  // state `own`. Not collective, but each rank must have called it before the next Combine. FAILED_PRECONDITION: no
  // state is due. ABORTED: this start of the group has been replaced.
  absl::Status KeepState(absl::string_view own);
  // The caller's state with which this start goes on, and its step; nullopt: none was found. Valid after Begin.
  struct OwnState {
    absl::string_view own;
    uint64_t step = 0;
  };
  std::optional<OwnState> RestoredState() const;

  // Says that the whole job is to stop before its last step. Not collective; one rank is enough.
  void Stop() { wants_stop_ = true; }
  // Returns whether a rank of this group, or of another one, has called Stop. The same on all ranks. It changes only in
  // Combine. The caller then calls Finish instead of making more steps.
  bool stopping() const { return stopping_; }

  // If a worker wants the group to leave (Reporter::LeaveReason), one step ends with an exchange of the whole vector,
  // and makes a state due. It is the step in which a rank learns the wish. Under sync, it is the next step that ends
  // with an exchange anyway: one more would make a round without the other groups. Call LeaveIfAsked after that step,
  // once the state is kept. It is then collective, and returns CANCELLED: the rank ends. Otherwise it returns OK at
  // once. A caller that makes another step instead gets CANCELLED from its Combine, and that step does not count.
  absl::Status LeaveIfAsked();

  // Returns when the whole vector has arrived (GroupStep::AwaitParameters). EndStep waits by itself before an exchange,
  // after the last step, and where `publishes` says so.
  absl::Status AwaitParameters() { return group_step_->AwaitParameters(); }

  // Collective, between steps. Sets the vector to the center's values, calls `work`, and puts the group's own values
  // back. If the center cannot be read because a server is away, WithCenter sends a notice instead and returns OK. The
  // notice has `purpose` in it ("was not evaluated at step 7"). Without servers `work` sees the group's own vector.
  absl::Status WithCenter(const std::string& purpose, const std::function<absl::Status()>& work);

  // Ends training after the step `step`, which is usually rhythm.steps_total; training may also end early. Collective,
  // once. Afterwards the center has the group's last values, as far as the rule says so, and the servers have written
  // it to disk. No other group waits for this one any more. If a rank has called Stop, the other groups learn it.
  absl::Status Finish(uint64_t step);

 private:
  absl::StatusOr<Attached> BeginFromCenter();
  absl::Status RestoreState(Attached& attached);
  absl::Status MakeGroupStep();
  void NoteRestart(uint64_t first_step);
  bool KeepsValues() const;
  bool HasState() const;
  bool TakesState(uint64_t step, const ExchangePlan& plan) const;
  void GatherNarrow() const;
  void ScatterNarrow() const;
  void OpenExchange(const Attached& attached);
  absl::Status FinishExchange();
  absl::Status Exchange(const ExchangePlan& plan);
  absl::StatusOr<uint64_t> ExchangeEarly(uint64_t step);
  absl::StatusOr<bool> AgreeOnEnd();
  void AskWhetherToStop();
  void NoteMissed();
  void NoteGap();
  absl::Status SaveCenter(uint64_t step);

  bool HasExchanges() const;
  bool LeavesInRhythm() const;
  bool Publishes(uint64_t step) const { return options_.publishes && options_.publishes(step); }
  absl::Span<float> Proposal() const {
    return deps_.arena->statistics().subspan(kGroupStepStatistics, kExchangePlannerStatistics);
  }
  float& Missed() const { return deps_.arena->statistics()[kGroupStepStatistics + kExchangePlannerStatistics]; }
  float& Skips() const { return deps_.arena->statistics()[kGroupStepStatistics + kExchangePlannerStatistics + 1]; }
  float& Stops() const { return deps_.arena->statistics()[kGroupStepStatistics + kExchangePlannerStatistics + 2]; }
  float& Leaves() const { return deps_.arena->statistics()[kGroupStepStatistics + kExchangePlannerStatistics + 3]; }
  // Both sums of CenterGap.
  absl::Span<float> Gap() const {
    return deps_.arena->statistics().subspan(kGroupStepStatistics + kExchangePlannerStatistics + 4, 2);
  }
  absl::Span<float> StateStatistics() const {
    return deps_.arena->statistics().subspan(kTrainingStatistics - kGroupStateStatistics, kGroupStateStatistics);
  }
  ExchangePlanner::Moment MomentAt(uint64_t step) const;
  ExchangePlan PlanAfter(uint64_t step) const;
  RankZeroCall CallFor(absl::Duration timeout) const;

  const GroupTrainingDependencies deps_;
  const GroupTrainingOptions options_;
  std::unique_ptr<GroupStep> group_step_;
  // Null if there is no center.
  std::unique_ptr<GroupExchange> exchange_;
  std::unique_ptr<ExchangePlanner> planner_;
  std::unique_ptr<GroupState> state_;            // Null if there is no center or no state to keep.
  std::optional<uint64_t> state_step_;           // The step of the state with which this start goes on.
  uint64_t step_ = 0;                            // Steps done by the group.
  uint64_t last_begun_ = 0;                      // The step after which the group began its last exchange.
  bool last_whole_ = true;                       // The last exchange was of the whole vector, not of a fragment.
  Cut last_cut_ = {0, 1};                        // The fragment that the last exchange was of.
  std::vector<uint64_t> exchanged_;              // For each fragment, the step after which it was last exchanged.
  bool wants_stop_ = false;                      // This rank knows that the job is to stop.
  bool stopping_ = false;                        // All ranks know that the job is to stop.
  std::string leave_reason_;                     // Why the group is to leave, as far as this rank knows.
  bool leaving_ = false;                         // All ranks know that the group is to leave.
  bool may_leave_ = false;                       // The step that must end before the group leaves has ended.
  absl::Time asks_next_ = absl::InfinitePast();  // When rank 0 asks again whether another group has stopped the job.
  absl::Time step_began_;
  // At the last NoteMissed, some rank's exchanges skipped a server.
  bool group_skips_ = false;
  uint64_t exchanges_judged_ = 0;  // GroupExchange::finished() at the last NoteMissed.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_GROUP_TRAINING_H_
