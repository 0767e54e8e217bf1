#include "worker/rank/trainer.h"

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/in_process_transport.h"
#include "proto/job.pb.h"
#include "worker/rank/agreement.h"
#include "worker/rank/in_memory_server.h"
#include "worker/rank/quadratic_model.h"

namespace hooke {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kValues = 3 * kBlockValues;  // With the buffer: four blocks.

// Keeps events for the test to look at; many reporters may share the record.
struct Record {
  absl::Mutex mutex;
  std::vector<v1::RankEvent> events ABSL_GUARDED_BY(mutex);
  std::function<void(const v1::RankEvent&)> on_event;

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

// What a test says about a group; the rest is the same for all.
struct GroupRun {
  uint32_t group = 0;
  int ranks = 1;
  uint32_t incarnation = 1;
  uint64_t seed = 1;
  uint32_t stands_for =
      0;  // This one rank reads what so many ranks of a group would: their batches, one after another.
  std::function<void(uint64_t step)> before_step = {};  // In rank 0, before it reads a batch.
};

struct GroupResult {
  std::vector<absl::StatusOr<uint64_t>> steps;  // Of each rank.
  std::vector<std::vector<float>> vectors;
  v1::RankProgress progress;  // Of rank 0.
};

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    options_.epochs = 2;
    options_.batch = 4;
    options_.rhythm.interval = 3;
    options_.schedule.learning_rate = 0.1;
    options_.schedule.total_epochs = 2;
    options_.optimizer.momentum = 0.5;
    options_.collective_timeout = absl::Seconds(20);
    options_.exchange_timeout = absl::Seconds(10);
    options_.attach_timeout = absl::Seconds(20);
    for (auto& server : servers_) calls_.push_back(server->Dial());
  }

  GroupResult Run(const GroupRun& run) {
    GroupResult result;
    result.steps.resize(run.ranks);
    result.vectors.resize(run.ranks);
    GroupOptions group_options;
    group_options.deadline = options_.collective_timeout;
    std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(run.ranks, group_options);
    std::vector<std::thread> threads;
    threads.reserve(groups.size());
    for (int rank = 0; rank < run.ranks; ++rank) {
      threads.emplace_back([&, rank] { RunRank(run, groups[rank].get(), &result); });
    }
    for (std::thread& thread : threads) thread.join();
    return result;
  }

  void RunRank(const GroupRun& run, Group* group, GroupResult* result) {
    QuadraticModel model(kValues, 5);
    Arena arena = *Arena::Make({.parameters = kValues, .buffers = 1, .statistics = kTrainerStatistics});
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
    uint64_t step = 0;
    Samples train = {96, 1, [&](absl::Span<const uint32_t> indices, absl::Span<float> pixels, absl::Span<int64_t>) {
                       if (group->rank() == 0 && run.before_step) run.before_step(step);
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
    ReporterOptions reporting;
    reporting.sinks.push_back(std::make_unique<RecordSink>(&record_));
    Reporter reporter(std::move(reporting));

    TrainerOptions options = options_;
    options.sender.set_job_id("job-1");
    options.sender.set_group(run.group);
    options.sender.set_rank(static_cast<uint32_t>(group->rank()));
    options.sender.set_incarnation(run.incarnation);
    CenterOptions center;
    center.sender = options.sender;
    center.job.set_rule(options.rule == RuleName::kNone ? v1::AveragingSpec::NONE : v1::AveragingSpec::ELASTIC);
    center.job.set_alpha(0.5);
    center.job.set_groups(options_.groups);
    center.job.set_ranks(static_cast<uint32_t>(run.ranks));
    center.layout = model.layout();
    center.partition = Partition(kValues + 1);
    center.servers = {calls_[0].get(), calls_[1].get()};
    CenterClient client(center);

    TrainerParts parts;
    parts.group = group;
    parts.model = &model;
    parts.arena = &arena;
    parts.sampler = &sampler;
    parts.train = &train;
    parts.test = &test;
    parts.reporter = &reporter;
    parts.center = with_servers_ ? &client : nullptr;
    result->steps[group->rank()] = Trainer(parts, options).Run();
    result->vectors[group->rank()].assign(arena.vector().begin(), arena.vector().end());
    if (group->rank() == 0) result->progress = reporter.Progress();
  }

  std::vector<Sampler> OthersOf(const GroupRun& run, SamplerOptions sampling) {
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
  std::vector<std::unique_ptr<InMemoryServer>> servers_ = [] {
    std::vector<std::unique_ptr<InMemoryServer>> servers;
    servers.push_back(std::make_unique<InMemoryServer>("first:1"));
    servers.push_back(std::make_unique<InMemoryServer>("second:2"));
    return servers;
  }();
  std::vector<std::unique_ptr<ServerCalls>> calls_;
};

// A group of n ranks with batch b does what one rank with batch n b does: same samples, same mean gradient, same steps.
TEST_F(TrainerTest, RanksTogetherAreOneBigBatch) {
  with_servers_ = false;
  options_.batch = 12;
  GroupResult one = Run({.ranks = 1, .stands_for = 3});
  options_.batch = 4;
  GroupResult three = Run({.ranks = 3});
  ASSERT_EQ(*one.steps[0], 16u);
  EXPECT_THAT(three.steps, Each(absl::StatusOr<uint64_t>(16)));
  ExpectSame(three.vectors);
  for (uint64_t i : {uint64_t{0}, kValues - 1}) EXPECT_NEAR(three.vectors[0][i], one.vectors[0][i], 1e-5);
  EXPECT_EQ(three.progress.step(), 16u);
  EXPECT_EQ(three.progress.steps_total(), 16u);
  EXPECT_EQ(three.progress.exchanges(), 0u);
}

// Without servers a group evaluates itself: each epoch as asked, and at the end.
TEST_F(TrainerTest, AloneItEvaluatesItself) {
  with_servers_ = false;
  options_.evaluate_every = 1;
  Run({.ranks = 2, .seed = 3});
  std::vector<v1::RankEvent> evaluated = record_.Of(v1::RankEvent::kEvaluated);
  ASSERT_THAT(evaluated, SizeIs(2));
  EXPECT_EQ(evaluated[0].evaluated().step(), 12u);
  EXPECT_EQ(evaluated[1].evaluated().step(), 24u);
  EXPECT_EQ(evaluated[1].evaluated().samples(), 10u);
  EXPECT_EQ(evaluated[1].evaluated().accuracy(), 1.0);
}

// The first group creates the center from its initial values; exchanges every interval and at the end tie the two
// together: afterwards the group is where the center is, but for one interval's training. Buffers are exchanged too.
// All ranks end with the same values.
TEST_F(TrainerTest, ExchangesWithTheCenter) {
  GroupResult result = Run({.ranks = 2, .seed = 40});
  EXPECT_EQ(*result.steps[0], 24u);
  EXPECT_EQ(*result.steps[1], 24u);
  ExpectSame(result.vectors);
  EXPECT_EQ(result.progress.exchanges(), 8u);
  EXPECT_EQ(result.progress.exchange_failures(), 0u);
  EXPECT_EQ(servers_[0]->applied() + servers_[1]->applied(), 8 * 4);
  EXPECT_NEAR(servers_[0]->center()[0], result.vectors[0][0], 3);
  EXPECT_LT(servers_[0]->center()[0], 20);     // It began at 40.
  EXPECT_GT(servers_[1]->center().back(), 0);  // The buffer: batches seen.
  EXPECT_EQ(record_.Of(v1::RankEvent::kNotice).size(), 0u);
}

// By time instead of by steps: rank 0's clock decides, for all ranks alike. Each step here takes a second, and later
// three.
TEST_F(TrainerTest, ExchangesByTime) {
  std::atomic<int> seconds{0};
  GroupRun run;
  run.ranks = 3;
  run.before_step = [&seconds](uint64_t step) { seconds += step < 8 ? 1 : 3; };
  options_.interval_time = absl::Seconds(4);
  options_.clock = [&seconds, start = absl::Now()] { return start + absl::Seconds(seconds.load()); };
  GroupResult result = Run(run);
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(16)));
  ExpectSame(result.vectors);
  // After steps 4 and 8, then after every second one, the last of them the end.
  EXPECT_EQ(result.progress.exchanges(), 6u);
}

// With a delay steps go on while a server holds its answers back, also over an evaluation; at the end all is settled.
TEST_F(TrainerTest, TrainsOnWhileAnExchangeIsOnItsWay) {
  options_.rhythm.interval = 6;
  options_.rhythm.delay = 4;
  options_.evaluate_every = 1;  // 12 steps.
  std::vector<uint64_t> steps;
  GroupRun run;
  run.ranks = 2;
  run.seed = 40;
  run.before_step = [&](uint64_t step) {  // After so many steps.
    steps.push_back(step);
    if (step % 6 == 5) servers_[1]->SetAnswering(false);
    if (step % 6 == 2) servers_[1]->SetAnswering(true);
    if (step == 23) servers_[1]->SetAnswering(true);  // The last exchange waits.
  };
  const GroupResult result = Run(run);
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  ExpectSame(result.vectors);
  EXPECT_THAT(steps, SizeIs(24));
  EXPECT_EQ(result.progress.exchanges(), 4u);
  EXPECT_EQ(result.progress.exchange_failures(), 0u);
  EXPECT_THAT(record_.Of(v1::RankEvent::kEvaluated), SizeIs(1));
  EXPECT_LT(servers_[0]->center()[0], 25);  // It began at 40.
}

// Post-local: after each step in the first epoch, then by the interval.
TEST_F(TrainerTest, ExchangesAfterEachStepAtFirst) {
  options_.rhythm.each_step_until = 12;
  const GroupResult result = Run({.ranks = 2});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_EQ(result.progress.exchanges(), 12u + 4u);
}

// A group that is three times slower than the fastest comes to a third of its interval, so that both exchanges equally
// often; each step here takes one second in the one and three in the other, exchanges not counted.
TEST_F(TrainerTest, TheIntervalFollowsTheSpeed) {
  options_.groups = 2;
  options_.epochs = 10;
  options_.rhythm.interval = 12;
  options_.adapts_interval = true;
  uint64_t exchanges[2] = {};
  for (const uint32_t group : {0, 1}) {
    std::atomic<int> seconds{0};
    GroupRun run;
    run.group = group;
    run.ranks = 2;
    run.before_step = [&](uint64_t) { seconds += group == 0 ? 1 : 3; };
    options_.clock = [&seconds, start = absl::Now()] { return start + absl::Seconds(seconds.load()); };
    const GroupResult result = Run(run);
    EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(60)));
    ExpectSame(result.vectors);
    exchanges[group] = result.progress.exchanges();
  }
  EXPECT_EQ(exchanges[0], 5u);                    // After 12, 24, ..., 60 steps.
  EXPECT_EQ(exchanges[1], 1u + (60u - 12u) / 4);  // After 12, when it learns of the other, then 16, 20, ..., 60.
}

// EAMSGD: x <- x - d leaves the velocity of the group's momentum as it is. By a value's formula in double precision.
TEST_F(TrainerTest, ElasticExchangesLeaveTheMomentumAlone) {
  const GroupResult result = Run({.ranks = 1, .seed = 40});
  SamplerOptions sampling;
  sampling.samples = 96;
  sampling.batch = options_.batch;
  sampling.seed = 9;
  Sampler sampler = *Sampler::Make(sampling);
  double x = 40, center = 40, velocity = 0;
  ASSERT_EQ(*result.steps[0], 48u);
  for (uint64_t step = 1; step <= 48; ++step) {
    double target = 0;
    for (const uint32_t index : sampler.BatchIndices(step - 1)) target += index % 7 / 4.0;
    velocity = 0.5 * velocity + (x - target);
    x -= 0.1 * velocity;
    if (step % 3 != 0) continue;
    const double difference = 0.5 * (x - center);
    center += difference;
    x -= difference;
  }
  for (const uint64_t i : {uint64_t{0}, kValues - 1}) EXPECT_NEAR(result.vectors[0][i], x, 1e-4);
  EXPECT_NEAR(servers_[0]->center()[0], center, 1e-4);
}

// Numbers by hand: with one step per exchange, x and c follow the elastic rule exactly.
TEST_F(TrainerTest, FollowsTheRuleByHand) {
  options_.rhythm.interval = 1;
  options_.schedule.learning_rate = 1e-30;  // Gradients change nothing: what is left is the spring.
  ASSERT_TRUE(Run({.group = 0, .seed = 8}).steps[0].ok());
  EXPECT_EQ(servers_[0]->center()[0], 8.0f);
}

// Exchanges and evaluations find the vector complete, and leave it so, however the group's steps aggregate.
TEST_F(TrainerTest, AggregationDoesNotChangeExchanges) {
  options_.evaluate_every = 1;
  options_.groups = 2;
  options_.aggregation.overlap = false;
  const GroupResult plain = Run({.ranks = 2, .seed = 40});
  ASSERT_TRUE(plain.steps[0].ok()) << plain.steps[0].status();
  const std::vector<float> center = servers_[0]->center();
  for (AggregationKind kind : {AggregationKind::kAllReduce, AggregationKind::kRooted, AggregationKind::kSharded}) {
    for (IssuePolicy order : {IssuePolicy::kFunneled, IssuePolicy::kConcurrent, IssuePolicy::kChained}) {
      for (auto& server : servers_) server->Forget();
      options_.aggregation.kind = kind;
      options_.aggregation.overlap = true;
      options_.aggregation.order = order;
      options_.aggregation.bucket_bytes = 4 * kValues / 3;
      const GroupResult result = Run({.ranks = 2, .seed = 40});
      EXPECT_THAT(result.steps, Each(*plain.steps[0])) << static_cast<int>(kind) << NameOf(order);
      EXPECT_EQ(result.vectors, plain.vectors);
      EXPECT_EQ(servers_[0]->center(), center);
    }
  }
}

// A group that was started again goes on at the step of its last exchange, from the center and not from its initial
// values.
TEST_F(TrainerTest, ResumesFromTheCenter) {
  options_.epochs = 1;
  ASSERT_EQ(*Run({.ranks = 2, .seed = 40}).steps[0], 12u);
  const float center = servers_[0]->center()[0];
  options_.epochs = 2;
  std::vector<uint64_t> first;
  GroupResult again = Run({.ranks = 2, .incarnation = 2, .seed = 1000, .before_step = [&](uint64_t step) {
                             if (step == 0) first.push_back(1);
                           }});
  EXPECT_EQ(*again.steps[0], 24u);
  EXPECT_EQ(again.progress.exchanges(), 4u);  // Steps 15, 18, 21, 24.
  EXPECT_LT(again.vectors[0][0], center + 5);
  EXPECT_THAT(first, SizeIs(1));
  // Nothing left to do: it ends at once.
  GroupResult done = Run({.ranks = 2, .incarnation = 3});
  EXPECT_EQ(*done.steps[0], 24u);
  EXPECT_EQ(done.progress.exchanges(), 0u);
}

// A server that goes away does not stop training: one notice when it has, one when it is back, and exchanges work
// again.
TEST_F(TrainerTest, TrainsOnWithoutAServer) {
  options_.exchange_timeout = absl::Milliseconds(200);
  GroupRun run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 4) servers_[0]->SetReachable(false);
    if (step == 10) servers_[0]->SetReachable(true);
  };
  GroupResult result = Run(run);
  EXPECT_EQ(*result.steps[0], 24u);
  EXPECT_EQ(*result.steps[1], 24u);
  ExpectSame(result.vectors);
  EXPECT_EQ(result.progress.exchange_failures(), 2u);
  std::vector<v1::RankEvent> notices = record_.Of(v1::RankEvent::kNotice);
  ASSERT_THAT(notices, SizeIs(2));  // Rank 0 alone exchanges with the first server.
  EXPECT_THAT(notices[0].notice().text(), HasSubstr("server first:1 has not answered since "));
  EXPECT_THAT(notices[0].notice().text(), HasSubstr("; at step 6; training goes on"));
  EXPECT_THAT(notices[1].notice().text(), HasSubstr("server first:1 answers again at step 12; it had not since "));
}

// A server that comes back without its data gets the center again from the group, within an exchange.
TEST_F(TrainerTest, RecreatesALostCenter) {
  GroupRun run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 7) servers_[1]->Forget();
  };
  GroupResult result = Run(run);
  EXPECT_EQ(*result.steps[0], 24u);
  EXPECT_EQ(result.progress.exchange_failures(), 0u);
  EXPECT_FALSE(servers_[1]->center().empty());
}

// Group 0 evaluates the center between epochs, not at the end, and goes on with its own values.
TEST_F(TrainerTest, EvaluatesTheCenter) {
  options_.evaluate_every = 1;
  options_.groups = 2;
  options_.epochs = 3;
  GroupResult with = Run({.group = 0, .ranks = 2, .seed = 3});
  std::vector<v1::RankEvent> evaluated = record_.Of(v1::RankEvent::kEvaluated);
  ASSERT_THAT(evaluated, SizeIs(2));
  EXPECT_EQ(evaluated[0].evaluated().step(), 6u);
  EXPECT_EQ(evaluated[0].evaluated().epoch(), 1.0);
  EXPECT_EQ(evaluated[1].evaluated().step(), 12u);

  // The same group without evaluations ends with the same values: nothing of the center is left behind.
  for (auto& server : servers_) server->Forget();
  options_.evaluate_every = 0;
  GroupResult without = Run({.group = 0, .ranks = 2, .seed = 3});
  EXPECT_EQ(with.vectors[0], without.vectors[0]);

  // Other groups do not evaluate.
  options_.evaluate_every = 1;
  Run({.group = 1, .ranks = 2});
  EXPECT_THAT(record_.Of(v1::RankEvent::kEvaluated), SizeIs(2));
}

// Rule none: groups start from one center and train alone; group 0's values become the center at its evaluations and at
// its end.
TEST_F(TrainerTest, RuleNonePublishesGroupZero) {
  options_.rule = RuleName::kNone;
  options_.groups = 2;
  options_.evaluate_every = 1;
  GroupResult zero = Run({.group = 0, .ranks = 2, .seed = 40});
  EXPECT_EQ(zero.progress.exchanges(), 2u);  // After one epoch of two, and at the end.
  std::vector<float> center = servers_[0]->center();
  EXPECT_EQ(center[0], zero.vectors[0][0]);
  GroupResult one = Run({.group = 1, .ranks = 2, .seed = 40});
  EXPECT_EQ(one.progress.exchanges(), 0u);
  EXPECT_EQ(servers_[0]->center(), center);
}

// Attaching may take longer than a collective: the other ranks wait for rank 0 all the same.
TEST_F(TrainerTest, AttachesLongerThanACollective) {
  options_.collective_timeout = absl::Seconds(2);
  servers_[0]->MakeWait(12);  // Asked every quarter of a second.
  const absl::Time start = absl::Now();
  GroupResult result = Run({.ranks = 3});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(16)));
  EXPECT_GT(absl::Now() - start, options_.collective_timeout);
  ExpectSame(result.vectors);
}

// Every rank of a group that cannot attach learns why, from rank 0.
TEST_F(TrainerTest, AttachFailureReachesAllRanks) {
  servers_[1]->SetReachable(false);
  options_.attach_timeout = absl::Milliseconds(400);
  GroupResult result = Run({.ranks = 3});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("second:2"));
  }
}

// A server that misses the last exchange fails the group, on all ranks; started again, the group goes on from the
// exchange before and ends with all servers.
TEST_F(TrainerTest, LastExchangeNeedsEveryServer) {
  options_.collective_timeout = absl::Seconds(3);
  options_.exchange_timeout = absl::Seconds(1);
  GroupRun run;
  run.ranks = 3;
  run.seed = 40;
  run.before_step = [this](uint64_t step) {
    if (step == 15) servers_[0]->SetReachable(false);
  };
  GroupResult result = Run(run);
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kUnavailable) << steps.status();
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("first:1"));
  }
  EXPECT_EQ(result.progress.exchange_failures(), 1u);

  servers_[0]->SetReachable(true);
  result = Run({.ranks = 3, .incarnation = 2, .seed = 40});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(16)));
  EXPECT_EQ(result.progress.exchanges(), 1u);  // From step 15.
  EXPECT_EQ(servers_[0]->applied(), 6 * 2);
  EXPECT_NEAR(servers_[0]->center()[0], result.vectors[0][0], 3);
}

// What the last exchange left is on every server's disk when the group has ended; so it is where an earlier incarnation
// made that exchange and could not save.
TEST_F(TrainerTest, EndsWithTheCenterOnDisk) {
  options_.attach_timeout = absl::Seconds(1);
  servers_[1]->SetSaveError(absl::InternalError("input/output error"));
  GroupResult result = Run({.ranks = 2, .seed = 40});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kUnavailable) << steps.status();
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("input/output error"));
  }
  servers_[1]->SetSaveError(absl::OkStatus());
  result = Run({.ranks = 2, .incarnation = 2});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_EQ(result.progress.exchanges(), 0u);
  for (auto& server : servers_) {
    const std::vector<float> center = server->center();
    server->Restart();
    EXPECT_EQ(server->center(), center);
  }
}

// A server that was started again after the last exchange has lost it, though it saves without complaint: the group
// fails and makes up for it.
TEST_F(TrainerTest, SavingWhatWasLostIsNoSuccess) {
  servers_[1]->RestartBeforeSave();
  GroupResult result = Run({.ranks = 2, .seed = 40});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kUnavailable) << steps.status();
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("has lost the exchange at step 24"));
  }
  result = Run({.ranks = 2, .incarnation = 2, .seed = 40});
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_EQ(result.progress.exchanges(), 8u);
}

// A server that has lost its disk costs an evaluation, not the job: the next exchange gives it its shard back.
TEST_F(TrainerTest, EvaluationOutlivesALostShard) {
  options_.evaluate_every = 1;
  options_.rhythm.interval = 5;
  options_.exchange_timeout = absl::Seconds(1);
  GroupRun run;
  run.ranks = 2;
  run.before_step = [this](uint64_t step) {
    if (step == 11) servers_[1]->Forget();
  };
  GroupResult result = Run(run);
  EXPECT_THAT(result.steps, Each(absl::StatusOr<uint64_t>(24)));
  EXPECT_FALSE(servers_[1]->center().empty());
  EXPECT_THAT(record_.Of(v1::RankEvent::kEvaluated), SizeIs(0));
  std::vector<v1::RankEvent> notices = record_.Of(v1::RankEvent::kNotice);
  ASSERT_THAT(notices, SizeIs(2));  // One of each rank.
  EXPECT_THAT(notices[0].notice().text(), HasSubstr("the center was not evaluated at step 12: "));
}

// Between two attempts at servers that cannot be reached rank 0 pauses, and ends with the call's timeout.
TEST(PullInGroupTest, PausesBetweenAttempts) {
  InMemoryServer server("first:1");
  server.SetReachable(false);
  std::unique_ptr<ServerCalls> calls = server.Dial();
  CenterOptions center;
  center.servers = {calls.get()};
  std::unique_ptr<Group> group = std::move(MakeInProcessGroups(1)[0]);
  absl::Time now = absl::UnixEpoch();
  std::vector<absl::Duration> pauses;
  RankZeroCall call;
  call.collective_timeout = absl::Seconds(20);
  call.timeout = absl::Seconds(5);
  call.clock = [&now] { return now; };
  call.sleep = [&](absl::Duration pause) {
    pauses.push_back(pause);
    now += pause;
  };
  std::vector<float> vector;
  CenterClient client(center);
  absl::Status status = PullInGroup(*group, client, call, absl::MakeSpan(vector));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(pauses, SizeIs(19));  // The twentieth would end at the timeout.
  EXPECT_THAT(pauses, Each(absl::Milliseconds(250)));
}

// A server's final word ends the rank with its code; the group's other ranks end as well.
TEST_F(TrainerTest, ReplacedIncarnationEnds) {
  GroupRun run;
  run.before_step = [this](uint64_t step) {
    if (step == 4) servers_[0]->SetError(absl::AbortedError("incarnation 1 has been replaced"));
  };
  GroupResult result = Run(run);
  EXPECT_EQ(result.steps[0].status().code(), absl::StatusCode::kAborted);
}

// A loss that is no number ends training on all ranks, with the step and what to do.
TEST_F(TrainerTest, DivergenceIsNamed) {
  with_servers_ = false;
  options_.schedule.learning_rate = 1e20;
  GroupResult result = Run({.ranks = 2});
  for (const absl::StatusOr<uint64_t>& steps : result.steps) {
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(steps.status().message()), HasSubstr("try a smaller learning rate"));
  }
}

// Numbers and outcomes cross the group unharmed, the largest too.
TEST(AgreementTest, NumbersAndOutcomes) {
  constexpr int kRanks = 3;
  std::vector<std::unique_ptr<Group>> groups = MakeInProcessGroups(kRanks);
  std::vector<std::thread> threads;
  threads.reserve(groups.size());
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Group& group = *groups[rank];
      const uint64_t most = std::numeric_limits<uint64_t>::max();
      std::vector<uint64_t> numbers = {most, 16777217};
      if (rank != 0) numbers = {1, 2};
      EXPECT_TRUE(BroadcastNumbers(group, absl::MakeSpan(numbers)).ok());
      EXPECT_THAT(numbers, ElementsAre(most, 16777217u));

      std::vector<uint64_t> sums = {uint64_t{1} << 40, 4095, static_cast<uint64_t>(rank)};
      EXPECT_TRUE(SumNumbers(group, absl::MakeSpan(sums)).ok());
      EXPECT_THAT(sums, ElementsAre(uint64_t{3} << 40, 12285u, 3u));

      absl::Status outcome = rank == 0 ? absl::NotFoundError(std::string(300, 'x')) : absl::OkStatus();
      EXPECT_TRUE(BroadcastOutcome(group, outcome).ok());
      EXPECT_EQ(outcome.code(), absl::StatusCode::kNotFound);
      EXPECT_GE(outcome.message().size(), 240u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hooke
