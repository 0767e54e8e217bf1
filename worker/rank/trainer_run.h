#ifndef HOOKE_WORKER_RANK_TRAINER_RUN_H_
#define HOOKE_WORKER_RANK_TRAINER_RUN_H_

// For the trainer's tests: groups whose ranks are threads train a model that can be computed by hand, with two servers
// in memory.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "algorithms/sharding.h"
#include "clocks/steady_time.h"
#include "gtest/gtest.h"
#include "mpi_group/groups/in_process_group.h"
#include "proto/job.pb.h"
#include "worker/data/sampler.h"
#include "worker/data/samples.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/model/arena.h"
#include "worker/model/quadratic_model.h"
#include "worker/rank/trainer.h"
#include "worker/report/event_sink.h"
#include "worker/report/reporter.h"

namespace hooke {

inline constexpr uint64_t kValues = 3 * kBlockValues;  // Number of parameters. With the buffer, the vector has four
                                                       // blocks.

// Keeps events for the test to look at; many reporters may share the record.
struct Record {
  absl::Mutex mutex;
  std::vector<v1::RankEvent> events ABSL_GUARDED_BY(mutex);

  std::vector<v1::RankEvent> Of(v1::RankEvent::EventCase kind) {
    absl::MutexLock lock(&mutex);
    std::vector<v1::RankEvent> some;
    for (const v1::RankEvent& event : events) {
      if (event.event_case() == kind) some.push_back(event);
    }
    return some;
  }
};

class RecordSink : public EventSink {
 public:
  explicit RecordSink(Record* record) : record_(record) {}
  bool Send(const v1::RankEvent& event) override {
    absl::MutexLock lock(&record_->mutex);
    record_->events.push_back(event);
    return true;
  }
  void Close(absl::Duration) override {}
  void Cancel() override {}

 private:
  Record* const record_;
};

// A test's settings for one group. Settings that are not here are the same for all groups.
struct GroupToTrain {
  uint32_t group = 0;
  int ranks = 1;
  uint32_t incarnation = 1;
  uint64_t seed = 1;
  // If not 0, the group's one rank reads the batches that this many ranks would read, one after another.
  uint32_t stands_for = 0;
  std::function<void(uint64_t step)> before_step = {};  // Called on rank 0 before it reads a batch.
  // Before this step each rank waits until it knows that all its servers are back; 0: never.
  uint64_t awaits_servers_at = 0;
};

struct GroupResult {
  std::vector<absl::StatusOr<uint64_t>> steps;  // One for each rank.
  std::vector<std::vector<float>> vectors;
  v1::RankProgress progress;  // Progress of rank 0.
};

// The fixture: runs a test's groups, all with the same options.
class TrainerRun : public ::testing::Test {
 protected:
  TrainerRun() {
    options_.epochs = 2;
    options_.batch = 4;
    options_.training.rhythm.interval = 3;
    options_.schedule.learning_rate = 0.1;
    options_.schedule.total_epochs = 2;
    options_.training.optimizer->momentum = 0.5;
    options_.training.collective_timeout = absl::Seconds(20);
    options_.training.exchange_timeout = absl::Seconds(10);
    options_.training.attach_timeout = absl::Seconds(20);
    for (auto& server : servers_) calls_.push_back(server->Dial());
  }

  GroupResult Run(const GroupToTrain& run) {
    GroupResult result;
    result.steps.resize(run.ranks);
    result.vectors.resize(run.ranks);
    GroupOptions group_options;
    group_options.deadline = options_.training.collective_timeout;
    std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(run.ranks, group_options);
    std::vector<std::thread> threads;
    threads.reserve(groups.size());
    for (int rank = 0; rank < run.ranks; ++rank) {
      threads.emplace_back([&, rank] { RunRank(run, groups[rank].get(), &result); });
    }
    for (std::thread& thread : threads) thread.join();
    return result;
  }

  void RunRank(const GroupToTrain& run, Group* group, GroupResult* result) {
    QuadraticModel model(kValues, 5);
    Arena arena = *Arena::Make({.parameters = kValues, .buffers = 1, .statistics = kTrainingStatistics});
    ASSERT_TRUE(model.Bind(arena).ok());
    model.Initialize(run.seed);
    SamplerOptions sampling;
    sampling.samples = 96;
    sampling.groups = options_.groups;
    sampling.ranks = static_cast<uint32_t>(run.ranks);
    sampling.batch = options_.batch;
    sampling.seed = 9;
    sampling.group = run.group;
    sampling.rank = static_cast<uint32_t>(group->rank());
    Sampler sampler = *Sampler::Make(sampling);
    std::vector<Sampler> others = OthersOf(run, sampling);
    ReporterOptions reporting;
    reporting.sinks.push_back(std::make_unique<RecordSink>(&record_));
    Reporter reporter(std::move(reporting));
    uint64_t step = 0;
    Samples train = {96, 1, [&](absl::Span<const uint32_t> indices, absl::Span<float> pixels, absl::Span<int64_t>) {
                       if (group->rank() == 0 && run.before_step) run.before_step(step);
                       if (step == run.awaits_servers_at && step > 0) AwaitServers(reporter);
                       std::vector<uint32_t> read(indices.begin(), indices.end());
                       if (!others.empty()) read.clear();
                       for (Sampler& other : others) {
                         absl::Span<const uint32_t> batch = other.BatchIndices(step);
                         read.insert(read.end(), batch.begin(), batch.end());
                       }
                       ++step;
                       for (size_t i = 0; i < read.size(); ++i) pixels[i] = static_cast<float>(read[i] % 7);
                     }};
    Samples test = {10, 1, [](absl::Span<const uint32_t>, absl::Span<float> pixels, absl::Span<int64_t>) {
                      std::fill(pixels.begin(), pixels.end(), 3.0f);
                    }};
    TrainerOptions options = options_;
    options.training.sender.set_job_id("job-1");
    options.training.sender.set_group(run.group);
    options.training.sender.set_rank(static_cast<uint32_t>(group->rank()));
    options.training.sender.set_incarnation(run.incarnation);
    CenterOptions center;
    center.sender = options.training.sender;
    center.job.set_rule(options.training.rule == RuleName::kNone ? v1::AveragingSpec::NONE
                                                                 : v1::AveragingSpec::ELASTIC);
    center.job.set_alpha(0.5);
    center.job.set_groups(options_.groups);
    center.job.set_ranks(static_cast<uint32_t>(run.ranks));
    center.layout = model.layout();
    center.partition = Partition(kValues + 1);
    center.servers = {calls_[0].get(), calls_[1].get()};
    CenterClient client(center);

    TrainerDependencies deps;
    deps.group = group;
    deps.model = &model;
    deps.arena = &arena;
    deps.sampler = &sampler;
    deps.train = &train;
    deps.test = &test;
    deps.reporter = &reporter;
    deps.center = with_servers_ ? &client : nullptr;
    result->steps[group->rank()] = Trainer(deps, options).Run();
    result->vectors[group->rank()].assign(arena.vector().begin(), arena.vector().end());
    if (group->rank() == 0) result->progress = reporter.Progress();
  }

  static void AwaitServers(const Reporter& reporter) {
    const absl::Time end = SteadyTime() + absl::Seconds(20);
    while (reporter.Progress().absent_servers_size() > 0 && SteadyTime() < end) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_EQ(reporter.Progress().absent_servers_size(), 0);
  }

  std::vector<Sampler> OthersOf(const GroupToTrain& run, SamplerOptions sampling) {
    std::vector<Sampler> others;
    for (uint32_t rank = 0; rank < run.stands_for; ++rank) {
      sampling.ranks = run.stands_for;
      sampling.rank = rank;
      sampling.batch = options_.batch / run.stands_for;
      others.push_back(*Sampler::Make(sampling));
    }
    return others;
  }

  static void ExpectSame(const std::vector<std::vector<float>>& vectors) {
    for (const std::vector<float>& vector : vectors) EXPECT_EQ(vector, vectors[0]);
  }

  TrainerOptions options_;
  bool with_servers_ = true;
  Record record_;
  std::vector<std::unique_ptr<InMemoryServer>> servers_ = TwoInMemoryServers();
  std::vector<std::unique_ptr<ServerCalls>> calls_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_TRAINER_RUN_H_
