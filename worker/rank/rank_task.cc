#include "worker/rank/rank_task.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/center_rule.h"
#include "algorithms/learning_rate.h"
#include "algorithms/optimizer.h"
#include "algorithms/rule_facts.h"
#include "algorithms/sharding.h"
#include "job/job_check.h"
#include "job/job_defaults.h"
#include "job/job_options.h"
#include "mpi_group/issue_order/issue_order.h"
#include "worker/data/idx_dataset.h"
#include "worker/data/sampler.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_deadline.h"
#include "worker/exchange/shard_job.h"
#include "worker/model/arena.h"
#include "worker/model/model.h"
#include "worker/rank/evaluate.h"
#include "worker/rank/group_dataset.h"
#include "worker/rank/group_step.h"
#include "worker/rank/rank_zero.h"
#include "worker/rank/trainer.h"

namespace hooke {
namespace {

absl::Status Bad(absl::string_view field, const std::string& is, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("start file: ", field, " is ", is, "; allowed: ", allowed));
}

absl::Duration SecondsOr(double seconds, absl::Duration otherwise) {
  return seconds > 0 ? absl::Seconds(seconds) : otherwise;
}

absl::Duration CollectiveTimeout(const v1::GroupStart& start) {
  return SecondsOr(start.collective_timeout_seconds(), TrainerOptions().collective_timeout);
}

GroupStepOptions GroupStepOf(const v1::CollectivesSpec& spec) {
  GroupStepOptions options;
  if (spec.aggregation() == v1::CollectivesSpec::ROOTED) options.kind = AggregationKind::kRooted;
  if (spec.aggregation() == v1::CollectivesSpec::SHARDED) options.kind = AggregationKind::kSharded;
  options.overlap = spec.overlap();
  if (spec.order() == v1::CollectivesSpec::CONCURRENT) options.order = IssuePolicy::kConcurrent;
  if (spec.order() == v1::CollectivesSpec::CHAINED) options.order = IssuePolicy::kChained;
  options.bucket_bytes = static_cast<uint64_t>(std::ceil(spec.bucket_mib() * (1 << 20)));
  return options;
}

// Everything that the task needs, in the order in which it is made.
class RankRun {
 public:
  explicit RankRun(const RankTask& task) : task_(task), job_(FillDefaults(task.start.job())) {}

  absl::Status LoadData();
  absl::Status BuildModel();
  void DialServers();
  absl::Status AwaitOthers();
  uint64_t StepsPerEpoch() const;
  absl::StatusOr<uint64_t> Train();
  absl::StatusOr<uint64_t> EvaluateTheCenter();

 private:
  Samples SamplesOf(const IdxDataset& dataset) const;
  v1::ModelDescription Description() const;
  v1::Sender Sender() const;
  absl::StatusOr<Sampler> MakeSampler() const;
  absl::StatusOr<TrainerOptions> Options() const;

  const RankTask& task_;
  const v1::JobSpec job_;
  std::unique_ptr<IdxDataset> train_data_;
  std::unique_ptr<IdxDataset> test_data_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<ServerCalls>> servers_;
  std::unique_ptr<CenterClient> center_;
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
  // The whole arena is one piece of memory. The ranks of a node share it if the group can.
  auto allocate = [group = task_.group](uint64_t values) -> absl::StatusOr<ArenaMemory> {
    if (group->size() == 1) return AllocateOnHeap(values);
    absl::StatusOr<absl::Span<float>> memory = AllocateSharedValues<float>(*group, values);
    if (!memory.ok()) return memory.status();
    return ArenaMemory{*memory, nullptr};
  };
  const ModelLayout& layout = model_->layout();
  absl::StatusOr<Arena> arena = Arena::Make(
      {.parameters = layout.parameter_values(), .buffers = layout.buffer_values(), .statistics = kTrainerStatistics},
      allocate);
  if (!arena.ok()) return arena.status();
  arena_ = std::make_unique<Arena>(*std::move(arena));
  if (absl::Status status = model_->Bind(*arena_); !status.ok()) return status;
  model_->Initialize(job_.train().seed());
  return absl::OkStatus();
}

v1::Sender RankRun::Sender() const {
  v1::Sender sender;
  sender.set_job_id(task_.start.job_id());
  sender.set_group(task_.start.group());
  sender.set_rank(static_cast<uint32_t>(task_.group->rank()));
  sender.set_incarnation(task_.start.incarnation());
  sender.set_job_key(task_.start.job_key());
  return sender;
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
  if (task_.start.servers().empty()) return;
  CenterOptions options;
  options.sender = Sender();
  options.job = ShardJob(job_, {StepsPerEpoch(), model_->layout().parameter_values()});
  options.layout = model_->layout();
  options.model = Description();
  options.partition = Partition(model_->layout().values());
  for (const std::string& address : task_.start.servers()) {
    servers_.push_back(task_.dial(address));
    options.servers.push_back(servers_.back().get());
  }
  center_ = std::make_unique<CenterClient>(std::move(options));
}

// Waits until all ranks have started, which they do one after the other. From now on they run in step, so a rank that
// is late has failed or hangs.
absl::Status RankRun::AwaitOthers() {
  if (absl::Status status = task_.group->Barrier(); !status.ok()) return status;
  task_.group->SetDeadline(CollectiveTimeout(task_.start));
  return absl::OkStatus();
}

// Steps of each group in an epoch, as the sampler computes them; 0: the samples do not fill one step.
uint64_t RankRun::StepsPerEpoch() const {
  const uint64_t step = uint64_t{job_.groups().count()} * job_.groups().ranks() * job_.train().batch_size();
  return train_data_->size() / step;
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
  const v1::AveragingSpec& averaging = job_.averaging();
  const v1::TrainSpec& train = job_.train();
  const absl::StatusOr<RuleName> rule = ReadRule(averaging.rule());
  if (!rule.ok()) return rule.status();
  const absl::StatusOr<OptimizerOptions> optimizer = ReadOptimizer(train.optimizer());
  if (!optimizer.ok()) return optimizer.status();
  const absl::StatusOr<LearningRateOptions> schedule =
      ReadLearningRate(train.schedule(), train.optimizer(), train.epochs());
  if (!schedule.ok()) return schedule.status();
  const absl::StatusOr<Encoding> encoding = ReadEncoding(averaging.compression(), averaging.top_k());
  if (!encoding.ok()) return encoding.status();
  TrainerOptions options;
  options.rule = *rule;
  options.sender = Sender();
  options.groups = job_.groups().count();
  options.batch = train.batch_size();
  options.epochs = train.epochs();
  options.evaluate_every = train.evaluate_every();
  options.rhythm.interval = averaging.interval();
  options.adapts_interval = averaging.interval_auto();
  options.rhythm.delay = averaging.delay();
  options.rhythm.fragments = averaging.fragments();
  options.rhythm.each_step_until = averaging.post_local_epochs() * StepsPerEpoch();
  options.interval_time = absl::Seconds(averaging.interval_seconds());
  options.encoding = *encoding;
  if (WaitsForOthers(options.rule)) options.grace = absl::Seconds(averaging.grace_seconds());
  options.awaits_quorum = InRounds(options.rule) && averaging.quorum() > 1;
  options.group_step = GroupStepOf(job_.collectives());
  options.optimizer = *optimizer;
  options.schedule = *schedule;
  options.collective_timeout = CollectiveTimeout(task_.start);
  options.exchange_timeout = SecondsOr(task_.start.exchange_timeout_seconds(), options.exchange_timeout);
  return options;
}

absl::StatusOr<Sampler> RankRun::MakeSampler() const {
  SamplerOptions options;
  options.samples = train_data_->size();
  options.groups = job_.groups().count();
  options.ranks = static_cast<uint32_t>(task_.group->size());
  options.batch = job_.train().batch_size();
  options.seed = job_.train().seed();
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
  if (absl::Status status = CheckOptimizer(options.optimizer); !status.ok()) return status;
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
  deps.center = center_.get();
  return Trainer(deps, options).Run();
}

absl::StatusOr<uint64_t> RankRun::EvaluateTheCenter() {
  const absl::StatusOr<TrainerOptions> checked = Options();
  if (!checked.ok()) return checked.status();
  const TrainerOptions& options = *checked;
  task_.reporter->Enter(v1::RankProgress::ATTACHING);
  RankZeroCall call;
  call.timeout = options.attach_timeout + TransferTime(arena_->vector().size());
  call.collective_timeout = options.collective_timeout;
  absl::Status status = PullInGroup(*task_.group, *center_, call, arena_->vector());
  if (!status.ok()) return status;
  task_.reporter->Enter(v1::RankProgress::EVALUATING);
  absl::StatusOr<Evaluation> result = EvaluateInGroup(*task_.group, *model_, SamplesOf(*test_data_));
  if (!result.ok()) return result.status();
  const uint64_t steps = StepsPerEpoch() * job_.train().epochs();
  if (task_.group->rank() == 0) {
    task_.reporter->Evaluated(EvaluatedMessage(*result, steps, job_.train().epochs()));
  }
  return steps;
}

}  // namespace

absl::Duration StartTimeout(const v1::GroupStart& start) { return std::max(kStartTimeout, CollectiveTimeout(start)); }

absl::Status CheckStart(const v1::GroupStart& start, int ranks) {
  const v1::JobSpec job = FillDefaults(start.job());
  const bool trains = start.task() == v1::GroupStart::TRAIN;
  if (!trains && start.task() != v1::GroupStart::EVALUATE)
    return Bad("task", absl::StrCat(start.task()), "TRAIN, EVALUATE");
  if (!trains && start.servers().empty()) return Bad("servers", "empty", "the center's servers, to evaluate it");
  if (job.groups().ranks() != static_cast<uint32_t>(ranks)) {
    return Bad("job.groups.ranks", absl::StrCat(job.groups().ranks()),
               absl::StrCat("the ", ranks, " ranks that were started"));
  }
  if (trains && start.group() >= job.groups().count()) {
    return Bad("group", absl::StrCat(start.group()), absl::StrCat("0 to ", job.groups().count() - 1));
  }
  if (!start.servers().empty() && start.incarnation() == 0) return Bad("incarnation", "0", "at least 1");
  const std::vector<JobProblem> problems = CheckJob(job);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("start file: job.", problems.front().key, ": ", problems.front().message));
}

absl::StatusOr<uint64_t> RunRankTask(const RankTask& task) {
  task.reporter->Enter(v1::RankProgress::STARTING);
  if (absl::Status status = CheckStart(task.start, task.group->size()); !status.ok()) return status;
  RankRun run(task);
  if (absl::Status status = run.LoadData(); !status.ok()) return status;
  if (absl::Status status = run.BuildModel(); !status.ok()) return status;
  run.DialServers();
  if (absl::Status status = run.AwaitOthers(); !status.ok()) return status;
  return task.start.task() == v1::GroupStart::TRAIN ? run.Train() : run.EvaluateTheCenter();
}

}  // namespace hooke
