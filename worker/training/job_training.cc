#include "worker/training/job_training.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "algorithms/rule_facts.h"
#include "algorithms/sharding.h"
#include "job/group_kinds.h"
#include "job/job_check.h"
#include "job/job_defaults.h"
#include "job/job_options.h"
#include "mpi_group/issue_order/issue_order.h"
#include "worker/exchange/shard_job.h"

namespace hooke {
namespace {

absl::Status Bad(absl::string_view field, const std::string& is, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("start file: ", field, " is ", is, "; allowed: ", allowed));
}

absl::Duration SecondsOr(double seconds, absl::Duration otherwise) {
  return seconds > 0 ? absl::Seconds(seconds) : otherwise;
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

absl::Status CheckGenerations(const v1::GroupStart& start) {
  if (start.incarnation() < start.first_incarnation()) {
    return Bad("incarnation", absl::StrCat(start.incarnation()), absl::StrCat("at least ", start.first_incarnation()));
  }
  uint64_t last = 0;
  for (const v1::Generation& generation : start.earlier()) {
    if (generation.first_step() < last || generation.groups().empty()) {
      return Bad(
          "earlier",
          absl::StrCat("a generation of ", generation.groups_size(), " groups from step ", generation.first_step()),
          absl::StrCat("at least 1 group, from step ", last, " on"));
    }
    last = generation.first_step();
    for (const v1::GenerationGroup& group : generation.groups()) {
      if (group.ranks() == 0) return Bad("earlier", "a group without ranks", "at least 1 rank");
      last = std::max(last, group.last_step());
    }
  }
  if (start.first_step() >= last) return absl::OkStatus();
  return Bad("first_step", absl::StrCat(start.first_step()), absl::StrCat("at least ", last));
}

v1::Sender SenderOf(const v1::GroupStart& start, int rank) {
  v1::Sender sender;
  sender.set_job_id(start.job_id());
  sender.set_group(start.group());
  sender.set_rank(static_cast<uint32_t>(rank));
  sender.set_incarnation(start.incarnation());
  sender.set_job_key(start.job_key());
  return sender;
}

// Returns the step after which `epochs` passes over the data are done, to the nearest step.
uint64_t StepAfter(double epochs, const v1::GroupStart& start, const RankNumbers& numbers) {
  const double left = std::max(0.0, epochs - numbers.first_epoch);
  return start.first_step() + static_cast<uint64_t>(std::llround(left * static_cast<double>(numbers.steps_per_epoch)));
}

}  // namespace

absl::Duration CollectiveTimeout(const v1::GroupStart& start) {
  return SecondsOr(start.collective_timeout_seconds(), GroupTrainingOptions().collective_timeout);
}

absl::Duration StartTimeout(const v1::GroupStart& start) { return std::max(kStartTimeout, CollectiveTimeout(start)); }

absl::Status AwaitOthers(Group& group, const v1::GroupStart& start) {
  if (absl::Status status = group.Barrier(); !status.ok()) return status;
  group.SetDeadline(CollectiveTimeout(start));
  return absl::OkStatus();
}

absl::Status CheckStart(const v1::GroupStart& start, int ranks) {
  const v1::JobSpec job = FillDefaults(start.job());
  const bool trains = start.task() == v1::GroupStart::TRAIN;
  if (!trains && start.task() != v1::GroupStart::EVALUATE)
    return Bad("task", absl::StrCat(start.task()), "TRAIN, EVALUATE");
  if (!trains && start.servers().empty()) return Bad("servers", "empty", "the center's servers, to evaluate it");
  if (trains && start.group() >= job.groups().count()) {
    return Bad("group", absl::StrCat(start.group()), absl::StrCat("0 to ", job.groups().count() - 1));
  }
  if (const uint32_t expected = KindOf(job, start.group()).ranks(); expected != static_cast<uint32_t>(ranks)) {
    return Bad("job.groups.ranks", absl::StrCat(expected), absl::StrCat("the ", ranks, " ranks that were started"));
  }
  if (!start.servers().empty() && start.incarnation() == 0) return Bad("incarnation", "0", "at least 1");
  if (absl::Status status = CheckGenerations(start); !status.ok()) return status;
  const std::vector<JobProblem> problems = CheckJob(job);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("start file: job.", problems.front().key, ": ", problems.front().message));
}

absl::StatusOr<GroupTrainingOptions> TrainingOptionsOf(const v1::GroupStart& start, const v1::JobSpec& job,
                                                       const RankNumbers& numbers) {
  const v1::AveragingSpec& averaging = job.averaging();
  const absl::StatusOr<RuleName> rule = ReadRule(averaging.rule());
  if (!rule.ok()) return rule.status();
  const absl::StatusOr<OptimizerOptions> optimizer = ReadOptimizer(job.train().optimizer());
  if (!optimizer.ok()) return optimizer.status();
  const absl::StatusOr<Encoding> encoding = ReadEncoding(averaging.compression(), averaging.top_k());
  if (!encoding.ok()) return encoding.status();
  GroupTrainingOptions options;
  options.rule = *rule;
  options.groups = job.groups().count();
  options.slices = FewestRanks(job);
  options.state_interval = absl::Seconds(job.train().state_seconds());
  options.sender = SenderOf(start, numbers.rank);
  options.first_step = start.first_step();
  options.first_incarnation = start.first_incarnation();
  options.is_new = start.is_new();
  options.rhythm.interval = averaging.interval();
  options.adapts_interval = averaging.interval_auto();
  options.rhythm.delay = averaging.delay();
  options.rhythm.fragments = averaging.fragments();
  if (averaging.post_local_epochs() > numbers.first_epoch) {
    options.rhythm.each_step_until = StepAfter(averaging.post_local_epochs(), start, numbers);
  }
  options.interval_time = absl::Seconds(averaging.interval_seconds());
  options.encoding = *encoding;
  if (WaitsForOthers(options.rule)) options.grace = absl::Seconds(averaging.grace_seconds());
  options.awaits_quorum = InRounds(options.rule) && averaging.quorum() > 1;
  options.group_step = GroupStepOf(job.collectives());
  options.optimizer = *optimizer;
  options.collective_timeout = CollectiveTimeout(start);
  options.exchange_timeout = SecondsOr(start.exchange_timeout_seconds(), options.exchange_timeout);
  return options;
}

ArenaAllocator GroupAllocator(Group& group) {
  return [&group](uint64_t values) -> absl::StatusOr<ArenaMemory> {
    if (group.size() == 1) return AllocateOnHeap(values);
    absl::StatusOr<absl::Span<float>> memory = AllocateSharedValues<float>(group, values);
    if (!memory.ok()) return memory.status();
    return ArenaMemory{*memory, nullptr};
  };
}

std::unique_ptr<DialedCenter> DialCenter(const v1::GroupStart& start, const v1::JobSpec& job,
                                         const RankNumbers& numbers, const ModelLayout& layout,
                                         const std::optional<v1::ModelDescription>& model, const ServerDialer& dial) {
  if (start.servers().empty()) return nullptr;
  CenterOptions options;
  options.sender = SenderOf(start, numbers.rank);
  options.job = ShardJob(job, {numbers.steps_per_epoch, layout.parameter_values(), numbers.steps_total,
                               start.first_incarnation(), start.first_step(), numbers.first_epoch});
  options.layout = layout;
  options.model = model;
  options.partition = Partition(layout.values());
  std::vector<std::unique_ptr<ServerCalls>> servers;
  for (const std::string& address : start.servers()) {
    servers.push_back(dial(address));
    options.servers.push_back(servers.back().get());
  }
  return std::make_unique<DialedCenter>(std::move(servers), std::move(options));
}

}  // namespace hooke
