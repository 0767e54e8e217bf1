#include "worker/rank/rank_task.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/learning_rate.h"
#include "algorithms/optimizer.h"
#include "job/command.h"
#include "job/group_kinds.h"
#include "job/job_defaults.h"
#include "job/job_options.h"
#include "worker/data/division.h"
#include "worker/data/idx_dataset.h"
#include "worker/data/sampler.h"
#include "worker/exchange/exchange_deadline.h"
#include "worker/model/arena.h"
#include "worker/model/model.h"
#include "worker/rank/evaluate.h"
#include "worker/rank/group_dataset.h"
#include "worker/rank/trainer.h"
#include "worker/training/group_training.h"
#include "worker/training/job_training.h"
#include "worker/training/rank_zero.h"

namespace hooke {
namespace {

// Everything that the task needs, in the order in which it is made.
class RankRun {
 public:
  explicit RankRun(const RankTask& task) : task_(task), job_(FillDefaults(task.start.job())) {}

  absl::Status LoadData();
  absl::Status BuildModel();
  void DialServers();
  std::vector<DataGeneration> EarlierGenerations() const;
  RankNumbers Numbers() const;
  absl::StatusOr<uint64_t> Train();
  absl::StatusOr<uint64_t> EvaluateTheCenter();

 private:
  Samples SamplesOf(const IdxDataset& dataset) const;
  v1::ModelDescription Description() const;
  absl::StatusOr<Sampler> MakeSampler() const;
  absl::StatusOr<TrainerOptions> Options() const;

  const RankTask& task_;
  const v1::JobSpec job_;
  std::unique_ptr<IdxDataset> train_data_;
  std::unique_ptr<IdxDataset> test_data_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<DialedCenter> center_;  // Null: there are no servers.
};

// Loads the training set and the test set, whatever the task. Test images are normalized with the training set's
// numbers, and a missing file should show at the start.
absl::Status RankRun::LoadData() {
  const absl::Duration timeout = CollectiveTimeout(task_.start);
  for (auto [prefix, data] :
       {std::make_pair(job_.data().train(), &train_data_), std::make_pair(job_.data().test(), &test_data_)}) {
    absl::StatusOr<IdxDataset> loaded = LoadInGroup(*task_.group, {prefix}, timeout);
    if (!loaded.ok()) return loaded.status();
    *data = std::make_unique<IdxDataset>(*std::move(loaded));
  }
  return absl::OkStatus();
}

absl::Status RankRun::BuildModel() {
  absl::StatusOr<std::unique_ptr<Model>> model = MakeModel({.name = job_.model().name(), .threads = task_.threads});
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  for (const auto& [prefix, data] :
       {std::make_pair(job_.data().train(), train_data_.get()), std::make_pair(job_.data().test(), test_data_.get())}) {
    if (data->image_values() == model_->input_values()) continue;
    return absl::InvalidArgumentError(absl::StrCat(prefix, " has images of ", data->rows(), " x ", data->columns(),
                                                   " pixels; model ", job_.model().name(), " wants ",
                                                   model_->input_values(), " values"));
  }
  absl::StatusOr<Arena> arena = Arena::Make({.parameters = model_->layout().parameter_values(),
                                             .buffers = model_->layout().buffer_values(),
                                             .statistics = kTrainingStatistics},
                                            GroupAllocator(*task_.group));
  if (!arena.ok()) return arena.status();
  arena_ = std::make_unique<Arena>(*std::move(arena));
  if (absl::Status status = model_->Bind(*arena_); !status.ok()) return status;
  model_->Initialize(job_.train().seed());
  return absl::OkStatus();
}

// Describes the network and the normalization of its input.
v1::ModelDescription RankRun::Description() const {
  const Architecture& architecture = model_->architecture();
  const Normalization& normalization = train_data_->normalization();
  v1::ModelDescription model;
  model.set_architecture(architecture.name);
  model.set_architecture_version(architecture.version);
  model.mutable_input_shape()->Assign(architecture.input_shape.begin(), architecture.input_shape.end());
  model.set_input_type("uint8");
  model.set_input_scale(kPixelMax);
  model.set_mean(normalization.mean);
  model.set_deviation(normalization.deviation);
  model.set_classes(model_->classes());
  return model;
}

void RankRun::DialServers() {
  center_ = DialCenter(task_.start, job_, Numbers(), model_->layout(), Description(), task_.dial);
}

std::vector<DataGeneration> RankRun::EarlierGenerations() const {
  std::vector<DataGeneration> generations;
  for (const v1::Generation& earlier : task_.start.earlier()) {
    DataGeneration& generation = generations.emplace_back();
    generation.first_step = earlier.first_step();
    for (const v1::GenerationGroup& group : earlier.groups()) {
      generation.groups.push_back({group.ranks(), group.batch_size(), group.last_step()});
    }
  }
  return generations;
}

// The steps are those of the sampler. If the samples do not fill one step, there are none, and Train says so.
RankNumbers RankRun::Numbers() const {
  RankNumbers numbers;
  numbers.rank = task_.group->rank();
  std::vector<DataGeneration> generations = EarlierGenerations();
  DataGeneration& present = generations.emplace_back();
  present.first_step = task_.start.first_step();
  for (const uint64_t samples : SamplesOfGroups(job_)) present.groups.push_back({1, static_cast<uint32_t>(samples)});
  const absl::StatusOr<Division> division = Division::Make(train_data_->size(), std::move(generations));
  if (!division.ok()) return numbers;
  numbers.steps_per_epoch = division->steps_per_epoch();
  if (task_.start.first_incarnation() == 0) return numbers;
  numbers.steps_total = division->StepsTotal(job_.train().epochs());
  numbers.first_epoch = division->EpochAt(division->first_step());
  return numbers;
}

Samples RankRun::SamplesOf(const IdxDataset& dataset) const {
  const Normalization normalization = train_data_->normalization();
  return {dataset.size(), dataset.image_values(),
          [&dataset, normalization](absl::Span<const uint32_t> indices, absl::Span<float> pixels,
                                    absl::Span<int64_t> labels) {
            dataset.WriteImages(indices, normalization, pixels);
            dataset.WriteLabels(indices, labels);
          }};
}

absl::StatusOr<TrainerOptions> RankRun::Options() const {
  const v1::TrainSpec& train = job_.train();
  const absl::StatusOr<LearningRateOptions> schedule =
      ReadLearningRate(train.schedule(), train.optimizer(), train.epochs());
  if (!schedule.ok()) return schedule.status();
  absl::StatusOr<GroupTrainingOptions> training = TrainingOptionsOf(task_.start, job_, Numbers());
  if (!training.ok()) return training.status();
  TrainerOptions options;
  options.groups = job_.groups().count();
  options.batch = KindOf(job_, task_.start.group()).batch_size();
  options.epochs = train.epochs();
  options.evaluate_every = train.evaluate_every();
  options.schedule = *schedule;
  options.training = *std::move(training);
  return options;
}

absl::StatusOr<Sampler> RankRun::MakeSampler() const {
  SamplerOptions options;
  options.samples = train_data_->size();
  options.groups = job_.groups().count();
  options.ranks = static_cast<uint32_t>(task_.group->size());
  options.batch = KindOf(job_, task_.start.group()).batch_size();
  if (HasKinds(job_)) options.group_samples = SamplesOfGroups(job_);
  options.seed = job_.train().seed();
  options.earlier = EarlierGenerations();
  options.first_step = task_.start.first_step();
  options.group = task_.start.group();
  options.rank = static_cast<uint32_t>(task_.group->rank());
  return Sampler::Make(options);
}

absl::StatusOr<uint64_t> RankRun::Train() {
  absl::StatusOr<Sampler> sampler = MakeSampler();
  if (!sampler.ok()) return sampler.status();
  const absl::StatusOr<TrainerOptions> checked = Options();
  if (!checked.ok()) return checked.status();
  const TrainerOptions& options = *checked;
  if (absl::Status status = CheckOptimizer(*options.training.optimizer); !status.ok()) return status;
  if (absl::Status status = CheckLearningRate(options.schedule); !status.ok()) return status;
  const Samples train = SamplesOf(*train_data_);
  const Samples test = SamplesOf(*test_data_);
  TrainerDependencies deps;
  deps.group = task_.group;
  deps.model = model_.get();
  deps.arena = arena_.get();
  deps.sampler = &*sampler;
  deps.train = &train;
  deps.test = &test;
  deps.reporter = task_.reporter;
  deps.center = center_ == nullptr ? nullptr : &center_->client;
  return Trainer(deps, options).Run();
}

absl::StatusOr<uint64_t> RankRun::EvaluateTheCenter() {
  const absl::StatusOr<TrainerOptions> checked = Options();
  if (!checked.ok()) return checked.status();
  const TrainerOptions& options = *checked;
  task_.reporter->Enter(v1::RankProgress::ATTACHING);
  RankZeroCall call;
  call.timeout = options.training.attach_timeout + TransferTime(arena_->vector().size());
  call.collective_timeout = options.training.collective_timeout;
  absl::Status status = PullInGroup(*task_.group, center_->client, call, arena_->vector());
  if (!status.ok()) return status;
  task_.reporter->Enter(v1::RankProgress::EVALUATING);
  absl::StatusOr<Evaluation> result = EvaluateInGroup(*task_.group, *model_, SamplesOf(*test_data_));
  if (!result.ok()) return result.status();
  const RankNumbers numbers = Numbers();
  const uint64_t steps = numbers.steps_total.value_or(numbers.steps_per_epoch * job_.train().epochs());
  if (task_.group->rank() == 0) {
    task_.reporter->Evaluated(EvaluatedMessage(*result, steps, job_.train().epochs()));
  }
  return steps;
}

}  // namespace

absl::StatusOr<uint64_t> RunRankTask(const RankTask& task) {
  task.reporter->Enter(v1::RankProgress::STARTING);
  if (absl::Status status = CheckStart(task.start, task.group->size()); !status.ok()) return status;
  if (HasCommand(task.start.job())) {
    return absl::InvalidArgumentError(
        "start file: job.command: hooke-rank trains built-in models only; start the command itself, with HOOKE_START");
  }
  RankRun run(task);
  task.reporter->BeginStart(v1::LifeSpan::DATA);
  if (absl::Status status = run.LoadData(); !status.ok()) return status;
  task.reporter->BeginStart(v1::LifeSpan::MODEL);
  if (absl::Status status = run.BuildModel(); !status.ok()) return status;
  task.reporter->BeginStart(v1::LifeSpan::JOINED);
  run.DialServers();
  if (absl::Status status = AwaitOthers(*task.group, task.start); !status.ok()) return status;
  return task.start.task() == v1::GroupStart::TRAIN ? run.Train() : run.EvaluateTheCenter();
}

}  // namespace hooke
