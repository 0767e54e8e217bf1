#include "worker/rank/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/rule_facts.h"
#include "worker/exchange/agreement.h"
#include "worker/exchange/exchange_deadline.h"
#include "worker/exchange/server_exchange.h"
#include "worker/rank/evaluate.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

using Phase = v1::RankProgress;

}  // namespace

absl::Status PullInGroup(Group& group, CenterClient& center, const RankZeroCall& call, absl::Span<float> vector) {
  RankZeroWork pull;
  pull.attempt = [&](absl::Time deadline) { return center.Pull(vector, deadline); };
  pull.stop = [&] { center.Stop(); };
  absl::Status pulled = InRankZero(group, call, pull);
  if (!pulled.ok()) return pulled;
  return group.Broadcast(TensorList(vector), 0);
}

Trainer::Trainer(const TrainerDependencies& deps, TrainerOptions options)
    : deps_(deps),
      options_(std::move(options)),
      steps_per_epoch_(deps.sampler->steps_per_epoch()),
      steps_total_(steps_per_epoch_ * options_.epochs),
      pixels_(options_.batch * deps.train->values),
      labels_(options_.batch) {}

absl::StatusOr<uint64_t> Trainer::Run() {
  absl::StatusOr<uint64_t> first = Begin();
  if (!first.ok()) return first.status();
  if (absl::Status status = MakeGroupStep(); !status.ok()) return status;
  NoteFreshOptimizer(*first);
  deps_.reporter->SetPlan({.step = *first, .steps_total = steps_total_, .epoch = Epoch(*first)});
  for (uint64_t step = *first; step < steps_total_; ++step) {
    const absl::Time began = options_.clock();
    if (absl::Status status = Step(step); !status.ok()) return status;
    if (schedule_ != nullptr) schedule_->NoteStepTime(options_.clock() - began);
    const uint64_t done = step + 1;
    if (absl::Status status = Exchange(done); !status.ok()) return status;
    if (EvaluationDue(done)) {
      if (absl::Status status = Evaluate(done); !status.ok()) return status;
    }
  }
  deps_.reporter->Enter(Phase::FINISHING);
  if (absl::Status status = SaveCenter(); !status.ok()) return status;
  // No rank leaves before all have ended, because a rank that has left looks like one that died.
  if (absl::Status status = deps_.group->Barrier(); !status.ok()) return status;
  return std::max(*first, steps_total_);
}

RankZeroCall Trainer::CallFor(absl::Duration timeout) const {
  RankZeroCall call;
  call.timeout = timeout;
  call.collective_timeout = options_.collective_timeout;
  call.clock = options_.clock;
  call.sleep = options_.sleep;
  return call;
}

absl::StatusOr<uint64_t> Trainer::Begin() {
  deps_.reporter->Enter(Phase::ATTACHING);
  Attached attached;
  if (deps_.center != nullptr) {
    absl::StatusOr<Attached> center = BeginFromCenter();
    if (!center.ok()) return center.status();
    attached = *center;
  }
  absl::Status status = deps_.group->Broadcast(TensorList(deps_.arena->vector()), 0);
  if (!status.ok()) return status;
  if (deps_.center != nullptr) OpenExchange(attached);
  return attached.last_sequence;
}

// Rank 0 attaches and reads the center. The first group creates the center from its own initial values. All ranks learn
// the outcome.
absl::StatusOr<Attached> Trainer::BeginFromCenter() {
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

// Makes the exchange and its schedule. Called when all ranks hold the center's values.
void Trainer::OpenExchange(const Attached& attached) {
  GroupExchangeOptions options;
  options.sender = options_.sender;
  options.rule = options_.rule;
  options.encoding = options_.encoding;
  options.overlaps = options_.rhythm.delay > 0 || options_.rhythm.fragments > 1;
  options.window_blocks = attached.window_blocks;
  options.grace = options_.grace;
  options.awaits_quorum = options_.awaits_quorum;
  options.exchange_timeout = options_.exchange_timeout;
  options.collective_timeout = options_.collective_timeout;
  options.clock = options_.clock;
  const GroupExchangeDependencies deps = {deps_.group, deps_.arena, deps_.center, deps_.reporter};
  exchange_ = std::make_unique<GroupExchange>(deps, std::move(options));
  ExchangeScheduleOptions schedule;
  schedule.rhythm = options_.rhythm;
  schedule.rhythm.steps_total = steps_total_;
  schedule.interval_time = options_.interval_time;
  schedule.adapts = options_.adapts_interval;
  schedule.first_step = attached.last_sequence;
  schedule.in_rounds = InRounds(options_.rule);
  schedule.skips_first_server = [exchange = exchange_.get()] { return exchange->SkipsFirstServer(); };
  schedule.ask_timeout = options_.exchange_timeout / 10;
  schedule.clock = options_.clock;
  schedule_ = std::make_unique<ExchangeSchedule>(std::move(schedule), deps_.group, deps_.center);
}

absl::Status Trainer::MakeGroupStep() {
  GroupStep::Dependencies deps;
  deps.group = deps_.group;
  deps.model = deps_.model;
  deps.arena = deps_.arena;
  if (exchange_ == nullptr || exchange_->StepsLocally()) deps.optimizer = options_.optimizer;
  deps.reporter = deps_.reporter;
  deps.collective_timeout = options_.collective_timeout;
  absl::StatusOr<std::unique_ptr<GroupStep>> group_step = GroupStep::Make(deps, options_.group_step);
  if (!group_step.ok()) return group_step.status();
  group_step_ = *std::move(group_step);
  return absl::OkStatus();
}

// Sends a notice if the group starts again without its optimizer's state. The center keeps the group's parameters, but
// nobody keeps that state.
void Trainer::NoteFreshOptimizer(uint64_t first_step) {
  const bool goes_on = options_.sender.incarnation() > 1 && first_step > 0 && first_step < steps_total_;
  const bool steps = exchange_ == nullptr || exchange_->StepsLocally();
  if (!goes_on || !steps || deps_.group->rank() != 0 || OptimizerStateValues(options_.optimizer) == 0) return;
  const bool adam = options_.optimizer.name != OptimizerName::kSgd;
  deps_.reporter->Notice(absl::StrCat("group ", options_.sender.group(), " was started again and goes on from step ",
                                      first_step, " with its optimizer's ", adam ? "moments" : "momentum",
                                      " at zero: a restart does not keep ", adam ? "them" : "it"));
}

absl::Status Trainer::Step(uint64_t step) {
  Reporter& reporter = *deps_.reporter;
  reporter.Enter(Phase::COMPUTE);
  deps_.train->read(deps_.sampler->BatchIndices(step), absl::MakeSpan(pixels_), absl::MakeSpan(labels_));
  if (Exchanges()) {
    schedule_->Propose(MomentAt(step + 1), Proposal());
    Missed() = exchange_->missed() ? 1.0f : 0.0f;
    Skips() = exchange_->SkipsSome() ? 1.0f : 0.0f;
  }
  absl::StatusOr<float> loss = group_step_->Run({pixels_, labels_}, LearningRate(options_.schedule, Epoch(step)));
  if (!loss.ok()) return loss.status();
  if (exchange_ != nullptr) exchange_->AddGradient();
  NoteMissed();
  if (!std::isfinite(*loss)) {
    // All ranks call AwaitParameters, so that none leaves while another still waits for parameters.
    group_step_->AwaitParameters().IgnoreError();
    return absl::InvalidArgumentError(absl::StrCat("training has diverged: the loss at step ", step + 1, " is ", *loss,
                                                   "; try a smaller learning rate"));
  }
  reporter.ReportStep({.step = step + 1,
                       .epoch = Epoch(step + 1),
                       .loss = *loss,
                       .samples = uint64_t{options_.batch} * static_cast<uint64_t>(deps_.group->size())});
  const uint64_t done = step + 1;
  const ExchangePlan plan = PlanAfter(done);
  const bool exchanges = plan.begins || plan.finishes;
  if (!exchanges && !EvaluationDue(done) && done < steps_total_) return absl::OkStatus();
  // An exchange, an evaluation or the end of training is about to use the vector and the group.
  reporter.Enter(Phase::COLLECTIVE);
  return group_step_->AwaitParameters();
}

// Counts exchanges that missed a server only on another rank. A rank knows only its own servers. It learns from the
// next step's collective that another rank has missed one.
void Trainer::NoteMissed() {
  if (!Exchanges()) return;
  group_skips_ = Skips() > 0;
  if (exchange_->finished() == exchanges_judged_) return;
  exchanges_judged_ = exchange_->finished();
  if (Missed() > 0 && !exchange_->missed()) deps_.reporter->AddMissedByOthers();
}

bool Trainer::Exchanges() const {
  return exchange_ != nullptr && (options_.rule != RuleName::kNone || options_.sender.group() == 0);
}

ExchangeSchedule::Moment Trainer::MomentAt(uint64_t step) const { return {step, exchange_->in_flight_since()}; }

ExchangePlan Trainer::PlanAfter(uint64_t step) const {
  if (!Exchanges()) return {};
  if (options_.rule != RuleName::kNone) return schedule_->PlanAfter(MomentAt(step), Proposal());
  // Under kNone, group 0 exchanges only so that others can read the center.
  ExchangePlan plan;
  plan.begins = plan.waits = EvaluationDue(step) || step == steps_total_;
  return plan;
}

bool Trainer::EvaluationDue(uint64_t step) const {
  if (options_.sender.group() != 0) return false;
  if (step == steps_total_) return deps_.center == nullptr;  // A center is evaluated when all groups have ended.
  return options_.evaluate_every > 0 && step % (options_.evaluate_every * steps_per_epoch_) == 0;
}

absl::Status Trainer::Exchange(uint64_t step) {
  const ExchangePlan plan = PlanAfter(step);
  if (plan.finishes) {
    if (absl::Status status = exchange_->Finish(); !status.ok()) return status;
  }
  if (!plan.begins) return absl::OkStatus();
  schedule_->Begun(step, plan);
  exchange_->Begin({step, plan.fragment, step == steps_total_});
  return plan.waits ? exchange_->Finish() : absl::OkStatus();
}

// Makes the servers save the center. It does so even if an earlier incarnation made the last exchange, because that one
// may have failed here.
absl::Status Trainer::SaveCenter() {
  if (!PlanAfter(steps_total_).begins) return absl::OkStatus();
  RankZeroWork save;
  save.attempt = [this](absl::Time deadline) {
    return deps_.center->Save(steps_total_, deps_.arena->vector(), deadline);
  };
  save.stop = [this] { deps_.center->Stop(); };
  absl::Status saved = InRankZero(*deps_.group, CallFor(options_.attach_timeout), save);
  if (saved.ok() || absl::IsAborted(saved) || absl::IsFailedPrecondition(saved)) return saved;
  // A new start of the group may mend all other errors: it goes on from what the servers still have.
  return ForWantOf(WantedServer(saved),
                   absl::UnavailableError(absl::StrCat("the center is not on every server's disk: ", saved.message())));
}

absl::Status Trainer::Evaluate(uint64_t step) {
  deps_.reporter->Enter(Phase::EVALUATING);
  if (deps_.center == nullptr) return EvaluateCenter(step);
  if (group_skips_) {
    // A part of the center is away. Reading it would delay training at each evaluation.
    if (deps_.group->rank() != 0) return absl::OkStatus();
    deps_.reporter->Notice(absl::StrCat("the center was not evaluated at step ", step, ": a server is away"));
    return absl::OkStatus();
  }
  // The center replaces the group's values in the arena while it is evaluated.
  const absl::Span<float> vector = deps_.arena->vector();
  const std::vector<float> own(vector.begin(), vector.end());
  const RankZeroCall call = CallFor(options_.exchange_timeout + TransferTime(vector.size()));
  absl::Status status = PullInGroup(*deps_.group, *deps_.center, call, vector);
  if (status.ok()) {
    status = EvaluateCenter(step);
  } else if (!IsFatalExchangeError(status)) {
    // If the servers failed, the next exchange repairs a lost shard. If the group failed, the next collective shows it.
    deps_.reporter->Notice(absl::StrCat("the center was not evaluated at step ", step, ": ", status.message()));
    status = absl::OkStatus();
  }
  std::copy(own.begin(), own.end(), vector.begin());
  return status;
}

absl::Status Trainer::EvaluateCenter(uint64_t step) {
  absl::StatusOr<Evaluation> result = EvaluateInGroup(*deps_.group, *deps_.model, *deps_.test);
  if (!result.ok()) return result.status();
  if (deps_.group->rank() != 0) return absl::OkStatus();
  deps_.reporter->Evaluated(EvaluatedMessage(*result, step, Epoch(step)));
  return absl::OkStatus();
}

}  // namespace hooke
