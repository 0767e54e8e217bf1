#include "worker/training/group_training.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/rule_facts.h"
#include "clocks/steady_time.h"
#include "mpi_group/tensor_list.h"
#include "worker/exchange/agreement.h"
#include "worker/exchange/exchange_deadline.h"
#include "worker/exchange/server_exchange.h"

namespace hooke {
namespace {

using Phase = v1::RankProgress;

// Names the state that a group's own optimizer loses when the group starts again; "" if it has none. An optimizer of
// the user's program is unknown here, so its state is just "state".
std::string LostState(const std::optional<OptimizerOptions>& optimizer) {
  if (!optimizer.has_value()) return "state";
  if (OptimizerStateValues(*optimizer) == 0) return "";
  return optimizer->name == OptimizerName::kSgd ? "momentum" : "moments";
}

}  // namespace

absl::Status PullInGroup(Group& group, CenterClient& center, const RankZeroCall& call, absl::Span<float> vector) {
  RankZeroWork pull;
  pull.attempt = [&](absl::Time deadline) { return center.Pull(vector, deadline); };
  pull.stop = [&] { center.Stop(); };
  absl::Status pulled = InRankZero(group, call, pull);
  if (!pulled.ok()) return pulled;
  return group.Broadcast(TensorList(vector), 0);
}

GroupTraining::GroupTraining(const GroupTrainingDependencies& deps, GroupTrainingOptions options)
    : deps_(deps), options_(std::move(options)) {}

RankZeroCall GroupTraining::CallFor(absl::Duration timeout) const {
  RankZeroCall call;
  call.timeout = timeout;
  call.collective_timeout = options_.collective_timeout;
  call.clock = options_.clock;
  call.sleep = options_.sleep;
  return call;
}

absl::StatusOr<uint64_t> GroupTraining::Begin() {
  deps_.reporter->Enter(Phase::ATTACHING);
  GatherNarrow();
  Attached attached;
  attached.last_sequence = options_.first_step;
  if (deps_.center != nullptr) {
    absl::StatusOr<Attached> center = BeginFromCenter();
    if (!center.ok()) return center.status();
    attached = *center;
    if (absl::Status status = RestoreState(attached); !status.ok()) return status;
  }
  absl::Status status = deps_.group->Broadcast(TensorList(deps_.arena->vector()), 0);
  if (!status.ok()) return status;
  ScatterNarrow();
  if (deps_.center != nullptr) OpenExchange(attached);
  if (absl::Status made = MakeGroupStep(); !made.ok()) return made;
  step_ = last_begun_ = attached.last_sequence;
  exchanged_.assign(std::max<uint32_t>(options_.rhythm.fragments, 1), step_);
  if (state_step_.has_value()) {
    absl::Status restored = group_step_->RestoreOptimizers(state_->restored()->optimizer);
    if (!restored.ok()) return restored;
  }
  NoteRestart(step_);
  // From here to its first step the program does work of its own, which must not count as attaching to servers.
  deps_.reporter->BeginStart(v1::LifeSpan::PROGRAM);
  // A group that is killed before its first exchange must also find a state.
  if (KeepsValues() && HasState() && !state_step_.has_value()) state_->Take(step_, deps_.arena->vector());
  return step_;
}

// Returns whether states have the group's values, so that the next start goes on from exactly the step of a state. That
// requires that the values depend on no other group, and that right after an exchange they equal the center's.
bool GroupTraining::KeepsValues() const {
  if (options_.rule == RuleName::kNone) return true;
  return CenterIsMean(options_.rule) && options_.groups == 1 && options_.rhythm.delay == 0 &&
         options_.rhythm.fragments <= 1 && options_.encoding.compression == Compression::kNone;
}

// Returns whether there is a state to keep, which a restarted group would miss otherwise.
bool GroupTraining::HasState() const {
  if (deps_.center == nullptr || options_.state_interval == absl::ZeroDuration()) return false;
  if (!options_.optimizer.has_value() || KeepsValues()) return true;
  return FactsOf(options_.rule).steps_locally && OptimizerStateValues(*options_.optimizer) > 0;
}

// Looks for the state of an earlier start. If the state has the group's values, the center is set to them, because the
// servers may have taken exchanges of later steps, and some of these only for some blocks. The center stays under
// kNone, and if the state is stale or of an earlier generation.
absl::Status GroupTraining::RestoreState(Attached& attached) {
  if (!HasState()) return absl::OkStatus();
  GroupStateOptions options;
  options.sender = options_.sender;
  options.with_values = KeepsValues();
  options.first_incarnation = options_.first_incarnation;
  options.takes_earlier = !options_.is_new;
  options.takes_earlier_values = options_.rule == RuleName::kNone;
  options.interval = options_.state_interval;
  options.timeout = options_.collective_timeout / 2;
  options.clock = options_.clock;
  state_ = std::make_unique<GroupState>(std::move(options), deps_.group, deps_.center->servers(), deps_.reporter);
  if (options_.sender.incarnation() <= 1) return absl::OkStatus();
  if (options_.is_new && options_.sender.incarnation() == options_.first_incarnation) return absl::OkStatus();
  const absl::Span<float> vector = deps_.arena->vector();
  // Rank 0 has the center's values. The other ranks need them if no state is found.
  const absl::StatusOr<std::optional<uint64_t>> step = state_->Restore(vector, attached.last_sequence);
  if (!step.ok()) return step.status();
  state_step_ = *step;
  if (!state_step_.has_value() || !KeepsValues()) return absl::OkStatus();
  if (state_->earlier()) {
    // When the generation ended, the group's work went to the center. It goes on from this generation's first step.
    if (options_.rule == RuleName::kNone) attached.last_sequence = options_.first_step;
    return absl::OkStatus();
  }
  if (state_->stale()) {
    if (deps_.group->rank() == 0) {
      deps_.reporter->Notice(absl::StrCat("the newest state of group ", options_.sender.group(), " is of step ",
                                          *state_step_, ", and the center is at step ", attached.last_sequence,
                                          ": the group takes the center's values, and its own state for the rest"));
    }
    return absl::OkStatus();
  }
  attached.last_sequence = *state_step_;
  if (options_.rule == RuleName::kNone) return absl::OkStatus();
  RankZeroWork rewind;
  rewind.attempt = [&](absl::Time deadline) { return deps_.center->Rewind(*state_step_, vector, deadline); };
  rewind.stop = [this] { deps_.center->Stop(); };
  return InRankZero(*deps_.group, CallFor(options_.attach_timeout + TransferTime(vector.size())), rewind);
}

absl::Status GroupTraining::KeepState(absl::string_view own) {
  if (!StateDue()) {
    return absl::FailedPreconditionError(
        "no state is due: keep one when that is said, before the next step's gradients");
  }
  deps_.reporter->Enter(Phase::EXCHANGE);
  absl::Status status = state_->Keep(group_step_->SaveOptimizers(), own);
  // Under kNone a start goes on from its state.
  if (status.ok() && options_.rule == RuleName::kNone) deps_.reporter->SetExchanged(step_);
  deps_.reporter->Enter(Phase::COMPUTE);
  return status;
}

std::optional<GroupTraining::OwnState> GroupTraining::RestoredState() const {
  if (!state_step_.has_value()) return std::nullopt;
  return OwnState{state_->restored()->own, *state_step_};
}

// Makes all ranks begin from the center's values. Rank 0 attaches and reads the center. The first group creates the
// center from its own initial values. All ranks return the outcome.
absl::StatusOr<Attached> GroupTraining::BeginFromCenter() {
  Attached attached;
  const RankZeroCall call = CallFor(options_.attach_timeout + TransferTime(deps_.arena->vector().size()));
  RankZeroWork begin;
  begin.attempt = [&](absl::Time deadline) {
    absl::StatusOr<Attached> center = deps_.center->Attach(deps_.arena->vector(), deadline);
    if (!center.ok()) return center.status();
    attached = *center;
    return deps_.center->Pull(deps_.arena->vector(), deadline + call.timeout);
  };
  begin.stop = [this] { deps_.center->Stop(); };
  absl::Status outcome = InRankZero(*deps_.group, call, begin);
  if (!outcome.ok()) return outcome;
  uint64_t numbers[] = {attached.last_sequence, attached.window_blocks};
  absl::Status status = BroadcastNumbers(*deps_.group, absl::MakeSpan(numbers));
  if (!status.ok()) return status;
  return Attached{numbers[0], static_cast<uint32_t>(numbers[1])};
}

// Makes the GroupExchange and its planner. Called when all ranks hold the center's values.
void GroupTraining::OpenExchange(const Attached& attached) {
  GroupExchangeOptions options;
  options.sender = options_.sender;
  options.rule = options_.rule;
  options.encoding = options_.encoding;
  options.slices = options_.slices;
  options.overlaps = options_.rhythm.delay > 0 || options_.rhythm.fragments > 1;
  options.window_blocks = attached.window_blocks;
  options.grace = options_.grace;
  options.awaits_quorum = options_.awaits_quorum;
  options.exchange_timeout = options_.exchange_timeout;
  options.collective_timeout = options_.collective_timeout;
  options.clock = options_.clock;
  const GroupExchangeDependencies deps = {deps_.group, deps_.arena, deps_.center, deps_.reporter};
  exchange_ = std::make_unique<GroupExchange>(deps, std::move(options));
  ExchangePlannerOptions planned;
  planned.rhythm = options_.rhythm;
  planned.interval_time = options_.interval_time;
  planned.adapts = options_.adapts_interval;
  planned.first_step = attached.last_sequence;
  planned.in_rounds = InRounds(options_.rule);
  planned.skips_first_server = [exchange = exchange_.get()] { return exchange->SkipsFirstServer(); };
  planned.ask_timeout = options_.exchange_timeout / 10;
  planned.clock = options_.clock;
  planner_ = std::make_unique<ExchangePlanner>(std::move(planned), deps_.group, deps_.center);
}

absl::Status GroupTraining::MakeGroupStep() {
  GroupStep::Dependencies deps;
  deps.group = deps_.group;
  deps.layout = deps_.layout;
  deps.arena = deps_.arena;
  if (deps_.narrow != nullptr) deps.gradients = deps_.narrow->gradients();
  if (StepsLocally()) deps.optimizer = options_.optimizer;
  deps.reporter = deps_.reporter;
  deps.collective_timeout = options_.collective_timeout;
  absl::StatusOr<std::unique_ptr<GroupStep>> group_step = GroupStep::Make(deps, options_.group_step);
  if (!group_step.ok()) return group_step.status();
  group_step_ = *std::move(group_step);
  return absl::OkStatus();
}

// Sends a notice that says with which state a restarted group goes on.
void GroupTraining::NoteRestart(uint64_t first_step) {
  const bool goes_on = options_.sender.incarnation() > 1 && first_step < options_.rhythm.steps_total;
  if (!goes_on || deps_.group->rank() != 0) return;
  if (options_.is_new && options_.sender.incarnation() == options_.first_incarnation) return;
  if (state_step_.has_value()) {
    deps_.reporter->Notice(absl::StrCat("group ", options_.sender.group(), " was started again and goes on from step ",
                                        first_step, " with its own state of step ", *state_step_));
    return;
  }
  if (!StepsLocally() || first_step == 0) return;
  const std::string lost = LostState(options_.optimizer);
  if (lost.empty()) return;
  deps_.reporter->Notice(absl::StrCat("group ", options_.sender.group(), " was started again and goes on from step ",
                                      first_step, " with its optimizer's ", lost,
                                      options_.optimizer.has_value() ? " at zero" : " as at the start",
                                      ": no kept state was found that all its ranks have"));
}

void GroupTraining::BeginStep() {
  step_began_ = options_.clock();
  group_step_->Begin();
}

absl::StatusOr<float> GroupTraining::Combine(float loss, double learning_rate) {
  if (HasExchanges()) {
    planner_->Propose(MomentAt(step_ + 1), Proposal());
    Missed() = exchange_->missed() ? 1.0f : 0.0f;
    Skips() = exchange_->SkipsSome() ? 1.0f : 0.0f;
    Gap()[0] = static_cast<float>(exchange_->gap().difference);
    Gap()[1] = static_cast<float>(exchange_->gap().center);
  }
  if (options_.learns_of_stops) AskWhetherToStop();
  Stops() = wants_stop_ ? 1.0f : 0.0f;
  if (leave_reason_.empty()) leave_reason_ = deps_.reporter->LeaveReason();
  Leaves() = leave_reason_.empty() ? 0.0f : 1.0f;
  if (state_ != nullptr) state_->Propose(StateStatistics());
  if (deps_.narrow != nullptr) deps_.narrow->GatherBuffers();
  absl::StatusOr<float> mean = group_step_->Finish(loss, learning_rate);
  if (deps_.narrow != nullptr) deps_.narrow->ScatterBuffers();
  if (!mean.ok()) return mean;
  NoteMissed();
  NoteGap();
  stopping_ = stopping_ || Stops() > 0;
  if (absl::Status left = LeaveIfAsked(); !left.ok()) return left;
  // The job's end comes first: a group that stops, or has made its last step, ends well.
  leaving_ = !stopping_ && Leaves() > 0;
  if (state_ != nullptr) state_->Learn(StateStatistics());
  return mean;
}

bool GroupTraining::EndStepUsesVector() const {
  const ExchangePlan plan = PlanAfter(step_ + 1);
  return plan.begins || plan.finishes || TakesState(step_ + 1, plan);
}

// Asks at most once a second, and so rarely that the answers take less than a hundredth of the time.
void GroupTraining::AskWhetherToStop() {
  if (deps_.group->rank() != 0 || wants_stop_ || exchange_ == nullptr || exchange_->SkipsFirstServer()) return;
  const absl::Time asked = options_.clock();
  if (asked < asks_next_) return;
  const absl::Time deadline = SteadyTime() + options_.exchange_timeout / 10;
  const absl::StatusOr<v1::PaceResponse> pace = deps_.center->Pace(0, deadline);
  if (options_.rule == RuleName::kNone && absl::IsNotFound(pace.status())) {
    // A server that has gone back to a snapshot may not know this start of the group, and no exchange tells it.
    deps_.center->AttachAgain(deadline).IgnoreError();
  }
  const absl::Time answered = options_.clock();
  asks_next_ = answered + std::max(absl::Seconds(1), 100 * (answered - asked));
  wants_stop_ = pace.ok() && pace->stops();
}

absl::Status GroupTraining::EndStep(const StepDone& done) {
  step_ = done.step;
  if (exchange_ != nullptr) {
    if (deps_.narrow != nullptr && SendsGradients(options_.rule)) deps_.narrow->WidenGradients();
    exchange_->AddGradient();
  }
  deps_.reporter->ReportStep(done);
  const ExchangePlan plan = PlanAfter(step_);
  may_leave_ = leaving_ && step_ < options_.rhythm.steps_total && (plan.begins || !LeavesInRhythm());
  if (plan.begins || plan.finishes || Publishes(step_) || step_ >= options_.rhythm.steps_total) {
    // An exchange, an evaluation or the end of training is about to use the vector and the group.
    deps_.reporter->Enter(Phase::COLLECTIVE);
    if (absl::Status status = group_step_->AwaitParameters(); !status.ok()) return status;
  }
  if (planner_ != nullptr) planner_->NoteStepTime(options_.clock() - step_began_);
  if (plan.begins || plan.finishes) GatherNarrow();
  if (absl::Status status = Exchange(plan); !status.ok()) return status;
  if (plan.begins || plan.finishes) {
    ScatterNarrow();
    // The program's own work goes on here, until its next step begins.
    deps_.reporter->Enter(Phase::COMPUTE);
  }
  if (!TakesState(step_, plan)) return absl::OkStatus();
  if (absl::Status status = group_step_->AwaitParameters(); !status.ok()) return status;
  GatherNarrow();
  state_->Take(step_, deps_.arena->vector());
  return absl::OkStatus();
}

void GroupTraining::GatherNarrow() const {
  if (deps_.narrow != nullptr) deps_.narrow->Gather();
}

void GroupTraining::ScatterNarrow() const {
  if (deps_.narrow != nullptr) deps_.narrow->Scatter();
}

// Returns whether to take a state after this step. A state is taken right after an exchange, because a restarted group
// goes on from there. Under kNone it is taken after any step.
bool GroupTraining::TakesState(uint64_t step, const ExchangePlan& plan) const {
  if (state_ == nullptr || step >= options_.rhythm.steps_total) return false;
  if (!state_->wanted() && !leaving_) return false;
  if (options_.rule == RuleName::kNone) return true;
  return plan.begins && (plan.waits || !KeepsValues());
}

// Counts exchanges that missed a server only on another rank. A rank knows only of its own servers. The next step's
// collective tells it that another rank has missed a server.
void GroupTraining::NoteMissed() {
  if (!HasExchanges()) return;
  group_skips_ = Skips() > 0;
  if (exchange_->finished() == exchanges_judged_) return;
  exchanges_judged_ = exchange_->finished();
  if (Missed() > 0 && !exchange_->missed()) deps_.reporter->AddMissedByOthers();
}

// Reports how far the group is from the center. Each rank knows it of its own slice, and the step's collective has put
// the slices together.
void GroupTraining::NoteGap() {
  if (!HasExchanges()) return;
  const std::optional<double> distance = RelativeDistance({Gap()[0], Gap()[1]});
  if (distance.has_value()) deps_.reporter->SetCenterDistance(*distance);
}

bool GroupTraining::HasExchanges() const {
  return exchange_ != nullptr && (options_.rule != RuleName::kNone || options_.sender.group() == 0);
}

ExchangePlanner::Moment GroupTraining::MomentAt(uint64_t step) const { return {step, exchange_->in_flight_since()}; }

ExchangePlan GroupTraining::PlanAfter(uint64_t step) const {
  if (!HasExchanges()) return {};
  if (options_.rule != RuleName::kNone) {
    ExchangePlan plan = planner_->PlanAfter(MomentAt(step), Proposal());
    if (leaving_ && (plan.begins || !LeavesInRhythm())) {
      plan.finishes = exchange_->in_flight_since().has_value();
      plan.begins = plan.waits = true;
      plan.fragment = {0, 1};
    }
    return plan;
  }
  // Under kNone, group 0 exchanges only so that evaluations and exports find its values at the center.
  ExchangePlan plan;
  plan.begins = plan.waits = Publishes(step) || step == options_.rhythm.steps_total;
  return plan;
}

absl::Status GroupTraining::Exchange(const ExchangePlan& plan) {
  if (plan.finishes) {
    if (absl::Status status = FinishExchange(); !status.ok()) return status;
  }
  if (!plan.begins) return absl::OkStatus();
  if (FactsOf(options_.rule).sends == RuleSends::kGradients) {
    // Servers step a block by its gradient and keep no older one. If a rank died in this step, no other one sends its
    // blocks. Without the barrier the center would then have blocks of two steps, and a group that starts again could
    // not go on exactly from them.
    if (absl::Status status = deps_.group->Barrier(); !status.ok()) return status;
  }
  planner_->Begun(step_, plan);
  last_begun_ = step_;
  last_whole_ = plan.fragment.parts == 1;
  last_cut_ = plan.fragment;
  exchange_->Begin({step_, plan.fragment, step_ == options_.rhythm.steps_total});
  return plan.waits ? FinishExchange() : absl::OkStatus();
}

// Waits for the exchange in flight, and reports how far the center has the group's work. A server that this rank missed
// has it after the next exchange.
absl::Status GroupTraining::FinishExchange() {
  if (absl::Status status = exchange_->Finish(); !status.ok()) return status;
  if (exchange_->missed() || options_.rule == RuleName::kNone) return absl::OkStatus();
  for (size_t part = 0; part < exchanged_.size(); ++part) {
    if (last_whole_ || part == last_cut_.index) exchanged_[part] = last_begun_;
  }
  deps_.reporter->SetExchanged(*std::min_element(exchanged_.begin(), exchanged_.end()));
  return absl::OkStatus();
}

absl::Status GroupTraining::WithCenter(const std::string& purpose, const std::function<absl::Status()>& work) {
  deps_.reporter->Enter(Phase::EVALUATING);
  if (deps_.center == nullptr) return work();
  if (group_skips_) {
    // A server of the center does not answer. Waiting for it would delay training at each evaluation.
    if (deps_.group->rank() != 0) return absl::OkStatus();
    deps_.reporter->Notice(absl::StrCat("the center ", purpose, ": a server is away"));
    return absl::OkStatus();
  }
  // The center replaces the group's values in the arena while `work` uses it.
  GatherNarrow();
  const absl::Span<float> vector = deps_.arena->vector();
  const std::vector<float> own(vector.begin(), vector.end());
  const RankZeroCall call = CallFor(options_.exchange_timeout + TransferTime(vector.size()));
  absl::Status status = PullInGroup(*deps_.group, *deps_.center, call, vector);
  if (status.ok()) {
    ScatterNarrow();
    status = work();
  } else if (!IsFatalExchangeError(status)) {
    // If the servers failed, the next exchange repairs a lost shard. If the group failed, the next collective shows it.
    deps_.reporter->Notice(absl::StrCat("the center ", purpose, ": ", status.message()));
    status = absl::OkStatus();
  }
  std::copy(own.begin(), own.end(), vector.begin());
  ScatterNarrow();
  return status;
}

}  // namespace hooke
