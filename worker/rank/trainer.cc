#include "worker/rank/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/rank/evaluate.h"

namespace hooke {
namespace {

using Phase = v1::RankProgress;

}  // namespace

Trainer::Trainer(const TrainerDependencies& deps, TrainerOptions options)
    : deps_(deps),
      options_(std::move(options)),
      steps_total_(deps.sampler->division().StepsTotal(options_.epochs)),
      pixels_(options_.batch * deps.train->values),
      labels_(options_.batch),
      training_({deps.group, &deps.model->layout(), deps.arena, deps.reporter, deps.center}, TrainingOptions()) {}

Trainer::~Trainer() { deps_.model->SetHooks({}); }

GroupTrainingOptions Trainer::TrainingOptions() const {
  GroupTrainingOptions options = options_.training;
  options.rhythm.steps_total = steps_total_;
  options.publishes = [this](uint64_t step) { return EvaluationDue(step); };
  return options;
}

absl::StatusOr<uint64_t> Trainer::Run() {
  absl::StatusOr<uint64_t> first = training_.Begin();
  if (!first.ok()) return first.status();
  deps_.model->SetHooks(training_.Hooks());
  if (absl::Status status = KeepStateIfDue(); !status.ok()) return status;
  deps_.reporter->SetPlan({.step = *first, .steps_total = steps_total_, .epoch = Epoch(*first)});
  if (absl::Status status = TrainFrom(*first); !status.ok()) return status;
  if (absl::Status status = training_.Finish(steps_total_); !status.ok()) return status;
  return std::max(*first, steps_total_);
}

absl::Status Trainer::TrainFrom(uint64_t first_step) {
  for (uint64_t step = first_step; step < steps_total_; ++step) {
    absl::Status status = Step(step);
    if (status.ok() && EvaluationDue(step + 1)) status = Evaluate(step + 1);
    if (status.ok()) status = training_.LeaveIfAsked();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Trainer::Step(uint64_t step) {
  training_.BeginStep();
  deps_.train->read(deps_.sampler->BatchIndices(step), absl::MakeSpan(pixels_), absl::MakeSpan(labels_));
  absl::StatusOr<float> loss = deps_.model->TrainBatch({pixels_, labels_});
  if (loss.ok()) loss = training_.Combine(*loss, LearningRate(options_.schedule, Epoch(step)));
  if (!loss.ok()) return loss.status();
  const uint64_t done = step + 1;
  if (!std::isfinite(*loss)) {
    // All ranks call AwaitParameters, so that none leaves while another still waits for parameters.
    training_.AwaitParameters().IgnoreError();
    return absl::InvalidArgumentError(
        absl::StrCat("training has diverged: the loss at step ", done, " is ", *loss, "; try a smaller learning rate"));
  }
  absl::Status ended =
      training_.EndStep({.step = done,
                         .epoch = Epoch(done),
                         .loss = *loss,
                         .samples = uint64_t{options_.batch} * static_cast<uint64_t>(deps_.group->size())});
  return ended.ok() ? KeepStateIfDue() : ended;
}

// The sampler and the model have no state but the step, so the caller's state is empty.
absl::Status Trainer::KeepStateIfDue() { return training_.StateDue() ? training_.KeepState("") : absl::OkStatus(); }

bool Trainer::EvaluationDue(uint64_t step) const {
  if (options_.training.sender.group() != 0) return false;
  if (step == steps_total_) return deps_.center == nullptr;  // A center is evaluated when all groups have ended.
  const uint64_t epochs = options_.evaluate_every > 0 ? deps_.sampler->division().EpochsEndedBy(step) : 0;
  return epochs > 0 && epochs % options_.evaluate_every == 0;
}

absl::Status Trainer::Evaluate(uint64_t step) {
  return training_.WithCenter(absl::StrCat("was not evaluated at step ", step), [&] { return EvaluateCenter(step); });
}

absl::Status Trainer::EvaluateCenter(uint64_t step) {
  absl::StatusOr<Evaluation> result = EvaluateInGroup(*deps_.group, *deps_.model, *deps_.test);
  if (!result.ok()) return result.status();
  if (deps_.group->rank() != 0) return absl::OkStatus();
  deps_.reporter->Evaluated(EvaluatedMessage(*result, step, Epoch(step)));
  return absl::OkStatus();
}

}  // namespace hooke
