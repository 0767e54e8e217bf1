#include "worker/api/rank_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "algorithms/rule_facts.h"
#include "job/group_kinds.h"
#include "job/job_defaults.h"
#include "job/metric.h"
#include "job/visible_text.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "worker/exchange/agreement.h"
#include "worker/exchange/shard_job.h"

namespace hooke {
namespace {

constexpr size_t kNameBytesMax = 1024;
constexpr uint32_t kDimensionsMax = 16;
// Limit for the number of values, of a tensor and of the whole model. Sums of two such numbers do not overflow.
constexpr uint64_t kValuesMax = uint64_t{1} << 40;

absl::Status BadTensor(size_t index, const hooke_tensor& tensor, absl::string_view problem) {
  const std::string name = tensor.name == nullptr ? "" : absl::StrCat(" (", tensor.name, ")");
  return absl::InvalidArgumentError(absl::StrCat("tensor ", index, name, " ", problem));
}

absl::Status CheckTensor(size_t index, const hooke_tensor& tensor) {
  if (tensor.name == nullptr || *tensor.name == 0) return BadTensor(index, tensor, "has no name");
  const absl::string_view name = tensor.name;
  if (name.size() > kNameBytesMax || !IsVisibleText(name)) {
    return BadTensor(index, {},
                     absl::StrCat("has a name that is not visible UTF-8 of at most ", kNameBytesMax, " bytes"));
  }
  if (tensor.dimensions > kDimensionsMax) {
    return BadTensor(index, tensor, absl::StrCat("has more than ", kDimensionsMax, " dimensions"));
  }
  if (tensor.kind > HOOKE_BUFFER) return BadTensor(index, tensor, "is neither a parameter nor a buffer");
  if (tensor.type != HOOKE_FLOAT32 && tensor.type != HOOKE_BFLOAT16 && tensor.type != HOOKE_FLOAT16) {
    return BadTensor(index, tensor,
                     absl::StrCat("is ", NameOf(static_cast<DataType>(tensor.type)),
                                  "; Hooke trains float32, bfloat16 and float16 values: convert it first"));
  }
  if (tensor.device != HOOKE_HOST) {
    return BadTensor(
        index, tensor,
        absl::StrCat("is on device ", tensor.device,
                     "; this library trains values in host memory: register a copy there, as hooke.h says under "
                     "\"Values elsewhere\""));
  }
  if (tensor.dimensions > 0 && tensor.shape == nullptr) return BadTensor(index, tensor, "has no shape");
  uint64_t values = 1;
  for (uint32_t i = 0; i < tensor.dimensions; ++i) {
    if (tensor.shape[i] > 0 && values > kValuesMax / tensor.shape[i]) return BadTensor(index, tensor, "is too large");
    values *= tensor.shape[i];
  }
  if (values > 0 && tensor.values == nullptr) return BadTensor(index, tensor, "has no values");
  return absl::OkStatus();
}

NamedShape ShapeOf(const hooke_tensor& tensor) {
  return {tensor.name, std::vector<uint64_t>(tensor.shape, tensor.shape + tensor.dimensions)};
}

// A metric without a name counts as one whose name is "", which is not allowed either.
absl::string_view NameOf(const hooke_metric& metric) { return metric.name == nullptr ? "" : metric.name; }

// Returns one line with all properties in which the ranks' tensors must be equal.
std::string Describe(const hooke_tensor& tensor) {
  const NamedShape shape = ShapeOf(tensor);
  return absl::StrCat(NameOf(static_cast<DataType>(tensor.type)),
                      tensor.kind == HOOKE_PARAMETER ? " parameter " : " buffer ", shape.name, " [",
                      absl::StrJoin(shape.shape, " x "), "]");
}

// Replaces `text` by that of rank 0, which may have any length. Collective.
absl::Status BroadcastText(Group& group, std::string& text) {
  uint64_t bytes = text.size();
  if (absl::Status status = BroadcastNumbers(group, absl::MakeSpan(&bytes, 1)); !status.ok()) return status;
  std::vector<uint64_t> words((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  if (group.rank() == 0) std::memcpy(words.data(), text.data(), bytes);
  if (absl::Status status = BroadcastNumbers(group, absl::MakeSpan(words)); !status.ok()) return status;
  text.assign(reinterpret_cast<const char*>(words.data()), bytes);
  return absl::OkStatus();
}

}  // namespace

RankJob::RankJob(const v1::GroupStart& start, const Dependencies& deps)
    : start_(start),
      job_(FillDefaults(start.job())),
      deps_(deps),
      rule_(start.servers().empty() ? "none" : FactsOf(*RuleOf(job_.averaging().rule())).name) {
  for (const v1::Generation& generation : start.earlier()) {
    std::vector<hooke_share>& shares = shares_.emplace_back();
    for (const v1::GenerationGroup& group : generation.groups()) shares.push_back({group.ranks(), group.last_step()});
    earlier_.push_back({generation.first_step(), static_cast<uint32_t>(shares.size()), shares.data()});
  }
}

hooke_place RankJob::Place() const {
  hooke_place place = {};
  place.job = start_.job_id().c_str();
  place.group = start_.group();
  place.groups = job_.groups().count();
  place.rank = static_cast<uint32_t>(deps_.group->rank());
  place.ranks = static_cast<uint32_t>(deps_.group->size());
  place.incarnation = std::max<uint32_t>(start_.incarnation(), 1);
  place.has_servers = start_.servers().empty() ? 0 : 1;
  const RuleName rule = *RuleOf(job_.averaging().rule());
  place.steps_locally = start_.servers().empty() || FactsOf(rule).steps_locally ? 1 : 0;
  place.sends_gradients = !start_.servers().empty() && SendsGradients(rule) ? 1 : 0;
  place.seed = job_.train().seed();
  place.rule = rule_.c_str();
  place.ranks_before = static_cast<uint32_t>(RanksBefore(job_, start_.group()));
  place.ranks_of_all = static_cast<uint32_t>(AllRanksOf(job_));
  return place;
}

absl::Status RankJob::CheckStage(Stage wanted, const char* call, const char* otherwise) const {
  if (!lost_.ok()) return lost_;
  if (stage_ == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", otherwise));
}

absl::Status RankJob::Note(absl::Status status) {
  if (!status.ok() && lost_.ok()) lost_ = status;
  return status;
}

absl::Status RankJob::CheckTensors(absl::Span<const hooke_tensor> tensors) const {
  std::set<absl::string_view> names;
  bool buffers = false;
  uint64_t values = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (absl::Status status = CheckTensor(i, tensors[i]); !status.ok()) return status;
    if (!names.insert(tensors[i].name).second) return BadTensor(i, tensors[i], "has the name of another one");
    if (tensors[i].kind == HOOKE_PARAMETER && buffers) {
      return BadTensor(i, tensors[i], "is a parameter behind a buffer; give all parameters first");
    }
    buffers = tensors[i].kind == HOOKE_BUFFER;
    values += ShapeOf(tensors[i]).values();
    if (values > kValuesMax) return BadTensor(i, tensors[i], "makes the model too large");
  }
  return absl::OkStatus();
}

// Compares all ranks' lists of tensors with that of rank 0. INVALID_ARGUMENT on all ranks if one differs.
absl::Status RankJob::CompareTensors(absl::Span<const hooke_tensor> tensors) {
  std::vector<std::string> own;
  own.reserve(tensors.size());
  for (const hooke_tensor& tensor : tensors) own.push_back(Describe(tensor));
  // NUL can separate the lines, because no name has one.
  std::string text = absl::StrJoin(own, absl::string_view("\0", 1));
  const std::string mine = text;
  if (absl::Status status = BroadcastText(*deps_.group, text); !status.ok()) return status;
  absl::Status outcome;
  if (text != mine) {
    const std::vector<std::string> first = absl::StrSplit(text, '\0');
    const size_t at =
        static_cast<size_t>(std::mismatch(own.begin(), own.end(), first.begin(), first.end()).first - own.begin());
    const std::string none = "nothing";
    outcome = absl::InvalidArgumentError(absl::StrCat("the ranks register different tensors: number ", at, " is ",
                                                      at < first.size() ? first[at] : none, " on rank 0 and ",
                                                      at < own.size() ? own[at] : none, " on rank ",
                                                      deps_.group->rank(), "; make the same model on all ranks"));
  }
  absl::Status agreed = AgreeOnOutcome(*deps_.group, outcome);
  return agreed.ok() ? outcome : agreed;
}

absl::Status RankJob::Register(absl::Span<hooke_tensor> tensors) {
  if (absl::Status status = CheckStage(Stage::kJoined, "hooke_register", "tensors are registered already");
      !status.ok()) {
    return status;
  }
  absl::Status checked = CheckTensors(tensors);
  if (absl::Status status = AgreeOnOutcome(*deps_.group, checked); !status.ok()) return Note(status);
  if (!checked.ok()) return Note(checked);
  if (absl::Status status = CompareTensors(tensors); !status.ok()) return Note(status);
  for (const hooke_tensor& tensor : tensors) {
    (tensor.kind == HOOKE_PARAMETER ? layout_.parameters : layout_.buffers).push_back(ShapeOf(tensor));
  }
  if (absl::Status status = Allocate(tensors); !status.ok()) return Note(status);
  Move(tensors);
  ready_.resize(layout_.parameters.size());
  stage_ = Stage::kRegistered;
  return absl::OkStatus();
}

absl::Status RankJob::Allocate(absl::Span<const hooke_tensor> tensors) {
  std::vector<TypedTensor> typed;
  typed.reserve(tensors.size());
  bool narrow = false;
  for (const hooke_tensor& tensor : tensors) {
    typed.push_back({static_cast<DataType>(tensor.type), ShapeOf(tensor).values(), tensor.kind == HOOKE_PARAMETER});
    narrow = narrow || typed.back().type != DataType::kFloat32;
  }
  const ArenaAllocator allocate = GroupAllocator(*deps_.group);
  const bool widens = Place().sends_gradients != 0;
  const uint64_t statistics = kTrainingStatistics + 1 + layout_.parameters.size();
  absl::StatusOr<Arena> arena = Arena::Make(ArenaSizesOf(typed, widens, statistics), allocate);
  if (!arena.ok()) return arena.status();
  arena_ = std::make_unique<Arena>(*std::move(arena));
  if (!narrow) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<NarrowTensors>> made = NarrowTensors::Make(typed, widens, *arena_, allocate);
  if (!made.ok()) return made.status();
  narrow_ = *std::move(made);
  return absl::OkStatus();
}

// Moves the tensors' values into the job's memory.
void RankJob::Move(absl::Span<hooke_tensor> tensors) const {
  uint64_t at = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    hooke_tensor& tensor = tensors[i];
    const uint64_t values = ShapeOf(tensor).values();
    TensorPlace place;
    if (narrow_ != nullptr) {
      place = narrow_->places()[i];
    } else {
      place.values = MutableBytesOf(arena_->vector().subspan(at, values));
      if (tensor.kind == HOOKE_PARAMETER) place.gradient = MutableBytesOf(arena_->gradients().subspan(at, values));
      at += values;
    }
    if (values > 0) std::memcpy(place.values.data(), tensor.values, place.values.size());
    tensor.values = place.values.data();
    tensor.gradient = tensor.kind == HOOKE_PARAMETER ? place.gradient.data() : nullptr;
  }
}

absl::Status RankJob::CheckPlan(const hooke_plan& plan) const {
  if (!std::isfinite(plan.epochs_done) || plan.epochs_done < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("hooke_begin: the plan's epochs_done is ", plan.epochs_done, "; give a finite number, 0 or more"));
  }
  if (start_.servers().empty() || plan.steps_per_epoch > 0) return absl::OkStatus();
  const bool by_schedule = CountsEpochs(job_);
  if (!by_schedule && job_.averaging().post_local_epochs() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the job's ", by_schedule ? "train.schedule" : "averaging.post_local_epochs",
      " counts epochs, so hooke_begin needs the plan's steps_per_epoch (in Python: make a sampler with job.sampler)"));
}

absl::StatusOr<uint64_t> RankJob::Begin(const hooke_plan& plan) {
  absl::Status checked =
      CheckStage(Stage::kRegistered, "hooke_begin",
                 stage_ == Stage::kJoined ? "register the tensors first" : "training has begun already");
  if (!checked.ok()) return checked;
  checked = CheckPlan(plan);
  if (checked.ok() && job_.collectives().aggregation() != v1::CollectivesSpec::ALLREDUCE) {
    checked = absl::FailedPreconditionError(
        "collectives.aggregation: a program with an optimizer of its own needs `allreduce`; correct the job file");
  }
  if (!checked.ok()) return Note(checked);
  plan_ = plan;
  plan_.epochs_done = EpochsDone(plan);
  // A program whose length is fixed may have no step left in this generation.
  if (plan.steps_total > 0) plan_.steps_total = std::max<uint64_t>(plan.steps_total, start_.first_step());
  const RankNumbers numbers = {deps_.group->rank(), plan_.steps_per_epoch, plan_.steps_total, plan_.epochs_done};
  absl::StatusOr<GroupTrainingOptions> options = TrainingOptionsOf(start_, job_, numbers);
  if (!options.ok()) return Note(options.status());
  options->rhythm.steps_total = plan_.steps_total > 0 ? plan_.steps_total : kEndless;
  options->optimizer = std::nullopt;
  options->learns_of_stops = job_.groups().count() > 1;
  center_ = DialCenter(start_, job_, numbers, layout_, std::nullopt, deps_.dial);
  if (absl::Status status = AwaitOthers(*deps_.group, start_); !status.ok()) return Note(status);
  training_ = std::make_unique<GroupTraining>(
      GroupTrainingDependencies{deps_.group, &layout_, arena_.get(), deps_.reporter,
                                center_ == nullptr ? nullptr : &center_->client, narrow_.get()},
      *std::move(options));
  const absl::StatusOr<uint64_t> first = training_->Begin();
  if (!first.ok()) return Note(first.status());
  step_ = *first;
  deps_.reporter->SetPlan({.step = step_, .steps_total = plan_.steps_total, .epoch = Epoch(step_)});
  stage_ = Stage::kTraining;
  return step_;
}

double RankJob::EpochsDone(const hooke_plan& plan) const {
  if (plan.epochs_done > 0 || plan.steps_per_epoch == 0) return plan.epochs_done;
  // The length of a pass in steps of a single rank, so that it does not depend on the groups of a generation.
  const double steps_of_ranks = static_cast<double>(plan.steps_per_epoch) * static_cast<double>(AllRanksOf(job_));
  double epochs = 0;
  for (const v1::Generation& generation : start_.earlier()) {
    for (const v1::GenerationGroup& group : generation.groups()) {
      const uint64_t steps = group.last_step() - std::min(group.last_step(), generation.first_step());
      epochs += static_cast<double>(group.ranks()) * static_cast<double>(steps) / steps_of_ranks;
    }
  }
  return epochs;
}

double RankJob::Epoch(uint64_t step) const {
  if (plan_.steps_per_epoch == 0) return plan_.epochs_done;
  const uint64_t steps = step - std::min<uint64_t>(step, start_.first_step());
  return plan_.epochs_done + static_cast<double>(steps) / static_cast<double>(plan_.steps_per_epoch);
}

void RankJob::BeginStepIfNone() {
  if (in_step_) return;
  in_step_ = true;
  combined_ = false;
  std::fill(ready_.begin(), ready_.end(), false);
  training_->BeginStep();
}

absl::Status RankJob::GradientReady(size_t index) {
  if (absl::Status status = CheckStage(Stage::kTraining, "hooke_gradient_ready", "training has not begun or has ended");
      !status.ok()) {
    return status;
  }
  if (index >= ready_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hooke_gradient_ready: there is no parameter ", index, "; there are ", ready_.size()));
  }
  BeginStepIfNone();
  if (ready_[index]) {
    return absl::FailedPreconditionError(absl::StrCat("the gradient of ", layout_.parameters[index].name,
                                                      " is ready already; call hooke_combine once per step"));
  }
  ready_[index] = true;
  training_->GradientReady(index);
  return absl::OkStatus();
}

absl::StatusOr<float> RankJob::Combine(float loss, uint8_t* used) {
  if (absl::Status status = CheckStage(Stage::kTraining, "hooke_combine", "training has not begun or has ended");
      !status.ok()) {
    return status;
  }
  BeginStepIfNone();
  const bool knows = !std::isnan(loss);
  Given()[0] = knows ? 1 : 0;
  for (size_t i = 0; i < ready_.size(); ++i) Used()[i] = used == nullptr || used[i] != 0 ? 1 : 0;
  const absl::StatusOr<float> sum = training_->Combine(knows ? loss : 0, 0);
  if (!sum.ok()) return Note(sum.status());
  in_step_ = false;
  combined_ = true;
  loss_.reset();
  if (Given()[0] > 0) loss_ = *sum / Given()[0];
  for (size_t i = 0; used != nullptr && i < ready_.size(); ++i) used[i] = Used()[i] > 0 ? 1 : 0;
  return loss_.value_or(std::nanf(""));
}

absl::StatusOr<uint64_t> RankJob::EndStep(const hooke_step& done) {
  if (absl::Status status = CheckStage(Stage::kTraining, "hooke_end_step", "training has not begun or has ended");
      !status.ok()) {
    return status;
  }
  if (!combined_)
    return absl::FailedPreconditionError("hooke_end_step: there was no hooke_combine since the last step");
  if (loss_.has_value() && !std::isfinite(*loss_)) {
    return Note(absl::InvalidArgumentError(absl::StrCat("training has diverged: the loss at step ", step_ + 1, " is ",
                                                        *loss_, "; try a smaller learning rate")));
  }
  combined_ = false;
  StepDone step;
  step.step = ++step_;
  step.epoch = done.epoch > 0 ? done.epoch : Epoch(step_);
  step.loss = loss_.value_or(std::nanf(""));
  step.samples = done.samples * static_cast<uint64_t>(deps_.group->size());
  if (absl::Status status = training_->EndStep(step); !status.ok()) return Note(status);
  return step_;
}

absl::StatusOr<bool> RankJob::ValuesDue() const {
  if (absl::Status status = CheckStage(Stage::kTraining, "hooke_values_due", "training has not begun or has ended");
      !status.ok()) {
    return status;
  }
  if (!combined_) return absl::FailedPreconditionError("hooke_values_due: call hooke_combine first");
  return training_->EndStepUsesVector();
}

absl::StatusOr<bool> RankJob::StateDue() const {
  if (!lost_.ok()) return lost_;
  return stage_ == Stage::kTraining && training_->StateDue();
}

absl::Status RankJob::SaveState(absl::string_view own) {
  if (absl::Status status = CheckStage(Stage::kTraining, "hooke_save_state", "training has not begun or has ended");
      !status.ok()) {
    return status;
  }
  absl::Status status = training_->KeepState(own);
  return absl::IsFailedPrecondition(status) ? status : Note(std::move(status));
}

absl::StatusOr<std::optional<GroupTraining::OwnState>> RankJob::SavedState() const {
  if (training_ == nullptr || stage_ == Stage::kRegistered) {
    return absl::FailedPreconditionError("hooke_saved_state: training has not begun");
  }
  return training_->RestoredState();
}

absl::Status RankJob::WithCenter(const std::function<absl::Status()>& work) {
  if (!lost_.ok()) return lost_;
  if (training_ == nullptr) return absl::FailedPreconditionError("hooke_with_center: training has not begun");
  if (in_step_) return absl::FailedPreconditionError("hooke_with_center: call hooke_combine first");
  return Note(training_->WithCenter(absl::StrCat("was not looked at after step ", step_), work));
}

absl::Status RankJob::Evaluated(double accuracy, double loss, uint64_t samples,
                                absl::Span<const hooke_metric> metrics) {
  v1::CenterEvaluated evaluated;
  for (const hooke_metric& metric : metrics) {
    if (absl::Status status = SetMetric(NameOf(metric), metric.value, *evaluated.mutable_metrics()); !status.ok()) {
      return status;
    }
  }
  if (deps_.group->rank() != 0) return absl::OkStatus();
  evaluated.set_step(step_);
  evaluated.set_epoch(Epoch(step_));
  evaluated.set_accuracy(accuracy);
  evaluated.set_loss(loss);
  evaluated.set_samples(samples);
  deps_.reporter->Evaluated(evaluated);
  return absl::OkStatus();
}

absl::Status RankJob::Report(absl::Span<const hooke_metric> metrics) {
  for (const hooke_metric& metric : metrics) {
    if (absl::Status status = deps_.reporter->SetMetric(NameOf(metric), metric.value); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RankJob::Stop() {
  if (!lost_.ok()) return lost_;
  if (training_ == nullptr || stage_ == Stage::kRegistered) {
    return absl::FailedPreconditionError("hooke_stop: training has not begun; call hooke_begin first");
  }
  training_->Stop();
  return absl::OkStatus();
}

absl::StatusOr<bool> RankJob::Stopping() const {
  if (!lost_.ok()) return lost_;
  return training_ != nullptr && training_->stopping();
}

absl::Status RankJob::Collective(const std::function<absl::Status(Group& group)>& call) {
  if (!lost_.ok()) return lost_;
  if (in_step_) {
    return absl::FailedPreconditionError("a collective while gradients are on their way; call hooke_combine first");
  }
  return Note(call(*deps_.group));
}

absl::Status RankJob::Finish() {
  if (absl::Status status = CheckStage(Stage::kTraining, "hooke_finish", "training has not begun or has ended");
      !status.ok()) {
    return status;
  }
  if (in_step_) return absl::FailedPreconditionError("hooke_finish: call hooke_combine first");
  if (absl::Status status = training_->Finish(step_); !status.ok()) return Note(status);
  stage_ = Stage::kFinished;
  return absl::OkStatus();
}

}  // namespace hooke
