#ifndef HOOKE_WORKER_RANK_RULES_RUN_TEST_H_
#define HOOKE_WORKER_RANK_RULES_RUN_TEST_H_

// The fixture of the update rules' tests. It runs jobs through all layers: trainers of several groups as threads of a
// test, gRPC on loopback, and a real parameter server.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/center_rule.h"
#include "algorithms/group_rule.h"
#include "algorithms/learning_rate.h"
#include "algorithms/rule_facts.h"
#include "algorithms/sharding.h"
#include "clocks/steady_time.h"
#include "gtest/gtest.h"
#include "job/group_kinds.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/in_process_group.h"
#include "proto/job.pb.h"
#include "worker/data/sampler.h"
#include "worker/data/samples.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/restartable_server_test.h"
#include "worker/exchange/server_calls.h"
#include "worker/exchange/shard_job.h"
#include "worker/model/arena.h"
#include "worker/model/quadratic_model.h"
#include "worker/rank/trainer.h"
#include "worker/report/reporter.h"

namespace hooke {

inline constexpr uint64_t kParameters = 2 * kBlockValues + 100;  // Number of parameters. The buffer follows in the
                                                                 // third block.
inline constexpr uint64_t kSamples = 96;
inline constexpr float kStart = 40;  // Initial value of every parameter.
// Mean of the samples' values. Training moves the parameters towards it.
inline constexpr float kTarget = 3;
inline constexpr double kRate = 0.2;
inline constexpr uint32_t kBatch = 4;

class RulesTest : public ::testing::Test {
 protected:
  struct Rule {
    v1::AveragingSpec::Rule wire;
    RuleName name;
  };

  struct Shape {
    uint32_t groups = 1;
    uint32_t ranks = 1;
  };
  // A rank's position in the job.
  struct Place {
    uint32_t group = 0;
    uint32_t rank = 0;
    uint32_t ranks = 1;  // Ranks of the group.
  };

  static v1::JobSpec Job(const Rule& rule, const Shape& shape) {
    v1::JobSpec job;
    job.mutable_groups()->set_count(shape.groups);
    job.mutable_groups()->set_ranks(shape.ranks);
    job.mutable_train()->set_epochs(2);
    job.mutable_train()->set_batch_size(kBatch);
    job.mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
    job.mutable_train()->mutable_optimizer()->set_learning_rate(kRate);
    job.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::COSINE);
    job.mutable_train()->mutable_schedule()->set_final_fraction(0.5);
    v1::AveragingSpec& averaging = *job.mutable_averaging();
    averaging.set_rule(rule.wire);
    averaging.set_interval(3);
    averaging.set_alpha(0.3);
    averaging.set_quorum(1);
    averaging.set_grace_seconds(10);
    averaging.set_learning_rate(0.8);
    averaging.set_momentum(0.3);
    averaging.set_staleness_bound(6);
    return job;
  }

  // Makes the job's groups have these numbers of ranks.
  static void SetRanks(const std::vector<uint32_t>& ranks, v1::JobSpec& job) {
    for (const uint32_t each : ranks) {
      v1::GroupKind& kind = *job.mutable_groups()->add_kinds();
      kind.set_count(1);
      kind.set_ranks(each);
    }
    FillKinds(job);
  }

  // Trains a job with all its groups at the same time, and returns each group's vector. No group steps before all have
  // attached, unless `start_` is set.
  std::vector<std::vector<float>> Train(const v1::JobSpec& job, RuleName rule, bool with_server = true) {
    const uint32_t count = job.groups().count();
    std::vector<std::vector<float>> vectors(count);
    absl::BlockingCounter attached(static_cast<int>(count));
    absl::Notification all_attached;
    std::vector<std::vector<std::unique_ptr<Group>>> groups;
    std::vector<std::thread> threads;
    for (uint32_t group = 0; group < count; ++group) {
      const uint32_t ranks = KindOf(job, group).ranks();
      groups.push_back(MakeInProcessGroups(static_cast<int>(ranks)));
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, group, rank, mpi = groups[group][rank].get()] {
          const auto first = [this, &attached, &all_attached, rank] {
            if (rank > 0 || start_) return;
            if (attached.DecrementCount()) all_attached.Notify();
            EXPECT_TRUE(all_attached.WaitForNotificationWithTimeout(absl::Seconds(30)));
          };
          if (start_) start_(group);
          std::vector<float> vector = RunRank(job, rule, {group, mpi, with_server, first});
          if (rank == 0) vectors[group] = std::move(vector);
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    return vectors;
  }

  struct RankRun {
    uint32_t group = 0;
    Group* mpi = nullptr;
    bool with_server = true;
    std::function<void()> before_first_step;
  };

  static SamplerOptions SamplingOf(const v1::JobSpec& job, const RankRun& run) {
    SamplerOptions sampling;
    sampling.samples = kSamples;
    sampling.groups = job.groups().count();
    sampling.ranks = static_cast<uint32_t>(run.mpi->size());
    if (HasKinds(job)) sampling.group_samples = SamplesOfGroups(job);
    sampling.batch = kBatch;
    sampling.seed = 9;
    sampling.group = run.group;
    sampling.rank = static_cast<uint32_t>(run.mpi->rank());
    return sampling;
  }

  std::vector<float> RunRank(const v1::JobSpec& job, RuleName rule, const RankRun& run) {
    QuadraticModel model(kParameters);
    Arena arena = *Arena::Make({.parameters = kParameters, .buffers = 1, .statistics = kTrainingStatistics});
    EXPECT_TRUE(model.Bind(arena).ok());
    model.Initialize(static_cast<uint64_t>(kStart));
    const SamplerOptions sampling = SamplingOf(job, run);
    Sampler sampler = *Sampler::Make(sampling);
    Reporter reporter({});
    uint64_t step = 0;
    const Samples train = {kSamples, 1,
                           [&](absl::Span<const uint32_t> indices, absl::Span<float> pixels, absl::Span<int64_t>) {
                             if (step == 0) run.before_first_step();
                             if (on_step_) on_step_(step);
                             if (step > 0 && step == awaits_servers_at_) AwaitServers(reporter);
                             ++step;
                             for (size_t i = 0; i < indices.size(); ++i) {
                               const Place place = {run.group, sampling.rank, sampling.ranks};
                               pixels[i] = sample_ ? sample_(place) : static_cast<float>(indices[i] % 7);
                             }
                           }};
    TrainerOptions options;
    options.training.optimizer->momentum = job.train().optimizer().momentum();
    options.training.sender.set_job_id("job-1");
    options.training.sender.set_group(run.group);
    options.training.sender.set_rank(sampling.rank);
    options.training.sender.set_incarnation(1);
    options.training.slices = FewestRanks(job);
    options.groups = sampling.groups;
    options.batch = kBatch;
    options.epochs = job.train().epochs();
    options.training.rhythm.interval = job.averaging().interval();
    options.training.rhythm.delay = job.averaging().delay();
    options.training.rhythm.fragments = std::max<uint32_t>(job.averaging().fragments(), 1);
    options.training.rule = rule;
    options.training.grace = absl::Seconds(job.averaging().grace_seconds());
    options.training.awaits_quorum = InRounds(rule) && job.averaging().quorum() > 1;
    options.training.exchange_timeout = exchange_timeout_;
    const bool cosine = job.train().schedule().name() == v1::ScheduleSpec::COSINE;
    options.schedule.name = cosine ? LearningRateName::kCosine : LearningRateName::kConstant;
    options.schedule.learning_rate = kRate;
    options.schedule.total_epochs = job.train().epochs();
    options.schedule.final_fraction = 0.5;
    const std::unique_ptr<ServerCalls> calls = DialServer(server_.address());
    CenterOptions center;
    center.sender = options.training.sender;
    center.job = ShardJob(job, {sampler.division().steps_per_epoch(), kParameters});
    center.layout = model.layout();
    center.partition = Partition(kParameters + 1);
    center.servers = {calls.get()};
    CenterClient client(center);
    TrainerDependencies deps;
    deps.group = run.mpi;
    deps.model = &model;
    deps.arena = &arena;
    deps.sampler = &sampler;
    deps.train = &train;
    deps.test = &train;
    deps.reporter = &reporter;
    deps.center = run.with_server ? &client : nullptr;
    const absl::StatusOr<uint64_t> steps = Trainer(deps, options).Run();
    EXPECT_TRUE(steps.ok()) << steps.status();
    return {arena.vector().begin(), arena.vector().end()};
  }

  static void AwaitServers(const Reporter& reporter) {
    const absl::Time end = SteadyTime() + absl::Seconds(20);
    while (reporter.Progress().absent_servers_size() > 0 && SteadyTime() < end) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(reporter.Progress().absent_servers_size(), 0);
  }

  // Replaces the server by one that knows no job.
  void StartAnew() {
    server_.Stop();
    server_.LoseDisk();
    server_.Start();
  }

  std::vector<float> Center() {
    const std::unique_ptr<ServerCalls> calls = DialServer(server_.address());
    CenterOptions options;
    options.sender.set_job_id("job-1");
    options.layout = QuadraticModel(kParameters).layout();
    options.partition = Partition(kParameters + 1);
    options.servers = {calls.get()};
    std::vector<float> center(kParameters + 1);
    const absl::Status status = CenterClient(options).Pull(absl::MakeSpan(center), SteadyTime() + absl::Seconds(30));
    EXPECT_TRUE(status.ok()) << status;
    return center;
  }

  RestartableServer server_;
  absl::Duration exchange_timeout_ = absl::Seconds(5);
  // If set, each rank calls it and starts when it returns. If empty, all groups start together.
  std::function<void(uint32_t group)> start_;
  // Before this step each rank waits until it knows that its servers are back; 0: never.
  uint64_t awaits_servers_at_ = 0;
  std::function<void(uint64_t step)> on_step_;  // Called on every rank before the step.
  std::function<float(const Place&)> sample_;   // The values of a rank's samples. If empty, the indices of the samples
                                                // decide.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_RULES_RUN_TEST_H_
