// Every update rule through all layers: trainers of several groups, gRPC on loopback, a real parameter server.
#include <grpcpp/grpcpp.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "algorithms/optimizer.h"
#include "algorithms/sharding.h"
#include "algorithms/update_rule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/in_process_transport.h"
#include "proto/job.pb.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/parameter_server.h"
#include "worker/rank/center_client.h"
#include "worker/rank/grpc_server_calls.h"
#include "worker/rank/quadratic_model.h"
#include "worker/rank/shard_job.h"
#include "worker/rank/trainer.h"

namespace hooke {
namespace {

using Averaging = v1::AveragingSpec;

constexpr uint64_t kParameters = 2 * kBlockValues + 100;  // And a buffer, in the third block.
constexpr uint64_t kSamples = 96;
constexpr float kStart = 40;  // Of every parameter;
constexpr float kTarget = 3;  // and where the samples pull it.
constexpr double kRate = 0.2;
constexpr uint32_t kBatch = 4;

// A server process, as far as groups can see.
class Server {
 public:
  Server() { Start(); }
  ~Server() { Stop(); }

  const std::string& address() const { return address_; }

  void Start() {
    ParameterServerOptions options;
    options.storage = storage_;
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.snapshot_interval = absl::Hours(1);
    parameters_ = ParameterServer::Create(std::move(options)).value();
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address_.empty() ? "127.0.0.1:0" : address_, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(parameters_->service());
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  void Stop() {
    EXPECT_TRUE(parameters_->Stop().ok());
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
    server_.reset();
    parameters_.reset();
  }
  // While it is stopped.
  void Forget() { storage_ = std::make_shared<InMemoryStorage>(); }

 private:
  std::shared_ptr<Storage> storage_ = std::make_shared<InMemoryStorage>();
  std::string address_;
  std::unique_ptr<ParameterServer> parameters_;
  std::unique_ptr<grpc::Server> server_;
};

struct Rule {
  Averaging::Rule wire;
  RuleName name;
};

struct Shape {
  uint32_t groups = 1;
  uint32_t ranks = 1;
};

v1::JobSpec Job(const Rule& rule, const Shape& shape) {
  v1::JobSpec job;
  job.mutable_groups()->set_count(shape.groups);
  job.mutable_groups()->set_ranks(shape.ranks);
  job.mutable_train()->set_epochs(2);
  job.mutable_train()->set_batch_size(kBatch);
  job.mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  job.mutable_train()->mutable_optimizer()->set_learning_rate(kRate);
  job.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::COSINE);
  job.mutable_train()->mutable_schedule()->set_final_fraction(0.5);
  Averaging& averaging = *job.mutable_averaging();
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

class RulesTest : public ::testing::Test {
 protected:
  // Trains a job with all its groups at the same time; none steps before all have attached. The vector of each group.
  std::vector<std::vector<float>> Train(const v1::JobSpec& job, RuleName rule, bool with_server = true) {
    const Shape shape = {job.groups().count(), job.groups().ranks()};
    std::vector<std::vector<float>> vectors(shape.groups);
    absl::BlockingCounter attached(static_cast<int>(shape.groups));
    absl::Notification all_attached;
    std::vector<std::vector<std::unique_ptr<Group>>> groups;
    std::vector<std::thread> threads;
    for (uint32_t group = 0; group < shape.groups; ++group) {
      groups.push_back(MakeInProcessGroups(static_cast<int>(shape.ranks)));
      for (uint32_t rank = 0; rank < shape.ranks; ++rank) {
        threads.emplace_back([&, group, rank, mpi = groups[group][rank].get()] {
          const auto first = [&attached, &all_attached, rank] {
            if (rank > 0) return;
            if (attached.DecrementCount()) all_attached.Notify();
            EXPECT_TRUE(all_attached.WaitForNotificationWithTimeout(absl::Seconds(30)));
          };
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

  std::vector<float> RunRank(const v1::JobSpec& job, RuleName rule, const RankRun& run) {
    QuadraticModel model(kParameters);
    Arena arena = *Arena::Make({.parameters = kParameters, .buffers = 1, .statistics = kTrainerStatistics});
    EXPECT_TRUE(model.Bind(arena).ok());
    model.Initialize(static_cast<uint64_t>(kStart));
    SamplerOptions sampling;
    sampling.samples = kSamples;
    sampling.groups = job.groups().count();
    sampling.ranks = job.groups().ranks();
    sampling.batch = kBatch;
    sampling.seed = 9;
    sampling.group = run.group;
    sampling.rank = static_cast<uint32_t>(run.mpi->rank());
    Sampler sampler = *Sampler::Make(sampling);
    uint64_t step = 0;
    const Samples train = {kSamples, 1,
                           [&](absl::Span<const uint32_t> indices, absl::Span<float> pixels, absl::Span<int64_t>) {
                             if (step == 0) run.before_first_step();
                             if (on_step_) on_step_(step);
                             ++step;
                             for (size_t i = 0; i < indices.size(); ++i) pixels[i] = static_cast<float>(indices[i] % 7);
                           }};
    Reporter reporter({});

    TrainerOptions options;
    options.optimizer.momentum = job.train().optimizer().momentum();
    options.sender.set_job_id("job-1");
    options.sender.set_group(run.group);
    options.sender.set_rank(sampling.rank);
    options.sender.set_incarnation(1);
    options.groups = sampling.groups;
    options.batch = kBatch;
    options.epochs = job.train().epochs();
    options.rhythm.interval = job.averaging().interval();
    options.rhythm.delay = job.averaging().delay();
    options.rhythm.fragments = std::max<uint32_t>(job.averaging().fragments(), 1);
    options.rule = rule;
    options.grace = absl::Seconds(job.averaging().grace_seconds());
    options.exchange_timeout = exchange_timeout_;
    const bool cosine = job.train().schedule().name() == v1::ScheduleSpec::COSINE;
    options.schedule.name = cosine ? ScheduleName::kCosine : ScheduleName::kConstant;
    options.schedule.learning_rate = kRate;
    options.schedule.total_epochs = job.train().epochs();
    options.schedule.final_fraction = 0.5;
    const std::unique_ptr<ServerCalls> calls = DialServer(server_.address());
    CenterOptions center;
    center.sender = options.sender;
    center.job = ShardJob(job, {sampler.steps_per_epoch(), kParameters});
    center.layout = model.layout();
    center.partition = Partition(kParameters + 1);
    center.servers = {calls.get()};
    CenterClient client(center);
    TrainerParts parts;
    parts.group = run.mpi;
    parts.model = &model;
    parts.arena = &arena;
    parts.sampler = &sampler;
    parts.train = &train;
    parts.test = &train;
    parts.reporter = &reporter;
    parts.center = run.with_server ? &client : nullptr;
    const absl::StatusOr<uint64_t> steps = Trainer(parts, options).Run();
    EXPECT_TRUE(steps.ok()) << steps.status();
    return {arena.vector().begin(), arena.vector().end()};
  }

  std::vector<float> Center() {
    const std::unique_ptr<ServerCalls> calls = DialServer(server_.address());
    CenterOptions options;
    options.sender.set_job_id("job-1");
    options.layout = QuadraticModel(kParameters).layout();
    options.partition = Partition(kParameters + 1);
    options.servers = {calls.get()};
    std::vector<float> center(kParameters + 1);
    const absl::Status status = CenterClient(options).Pull(absl::MakeSpan(center), absl::Now() + absl::Seconds(30));
    EXPECT_TRUE(status.ok()) << status;
    return center;
  }

  Server server_;
  absl::Duration exchange_timeout_ = absl::Seconds(5);
  std::function<void(uint64_t step)> on_step_;  // In every rank.
};

// Server and rank read a rule's number alike, and a number that is none is none for both.
TEST(RuleNumbersTest, AreThoseOfTheJob) {
  const std::pair<Averaging::Rule, RuleName> rules[] = {
      {Averaging::ELASTIC, RuleName::kElastic}, {Averaging::NONE, RuleName::kNone},
      {Averaging::SYNC, RuleName::kSync},       {Averaging::ASYNC, RuleName::kAsync},
      {Averaging::SSP, RuleName::kSsp},         {Averaging::DOWNPOUR, RuleName::kDownpour},
      {Averaging::AVERAGE, RuleName::kAverage}, {Averaging::BMUF, RuleName::kBmuf},
      {Averaging::SLOWMO, RuleName::kSlowMo},   {Averaging::DILOCO, RuleName::kDiLoCo},
  };
  for (const auto& [number, name] : rules) EXPECT_EQ(RuleOf(number), name) << Averaging::Rule_Name(number);
  EXPECT_EQ(std::size(rules), static_cast<size_t>(Averaging::Rule_MAX));
  EXPECT_EQ(RuleOf(Averaging::RULE_UNSPECIFIED), std::nullopt);
  EXPECT_EQ(RuleOf(Averaging::Rule_MAX + 1), std::nullopt);
}

// Synchronous SGD over two groups of two ranks is what one group of four ranks does by MPI alone: the same samples, the
// same momentum and schedule, buffers included; and four groups of one rank do it, too.
TEST_F(RulesTest, SynchronousGroupsAreOneBigGroup) {
  const Rule sync = {Averaging::SYNC, RuleName::kSync};
  const auto with_momentum = [&sync](const Shape& shape) {
    v1::JobSpec job = Job(sync, shape);
    job.mutable_train()->mutable_optimizer()->set_momentum(0.5);
    job.mutable_averaging()->set_interval(1);
    return job;
  };
  const std::vector<float> alone = Train(with_momentum({1, 4}), sync.name, /*with_server=*/false)[0];
  EXPECT_NEAR(alone[0], kTarget, 1);
  const auto groups = Train(with_momentum({2, 2}), sync.name);
  const std::vector<float> center = Center();
  EXPECT_EQ(groups[0], center);
  EXPECT_EQ(groups[1], center);
  for (uint64_t i = 0; i < center.size(); ++i) ASSERT_NEAR(center[i], alone[i], 1e-4) << i;
}

struct Rhythm {
  uint32_t interval = 1;
  uint32_t delay = 0;
  uint32_t fragments = 1;
};

void SetRhythm(const Rhythm& rhythm, v1::JobSpec& job) {
  job.mutable_averaging()->set_interval(rhythm.interval);
  job.mutable_averaging()->set_delay(rhythm.delay);
  job.mutable_averaging()->set_fragments(rhythm.fragments);
}

// With every other rule groups learn, whether they wait for answers or train on meanwhile: the center comes from 40 to
// where the samples pull it, and rounds leave all groups exactly at the center.
TEST_F(RulesTest, EveryRuleLearns) {
  const Rule rules[] = {
      {Averaging::ELASTIC, RuleName::kElastic}, {Averaging::ASYNC, RuleName::kAsync},
      {Averaging::SSP, RuleName::kSsp},         {Averaging::DOWNPOUR, RuleName::kDownpour},
      {Averaging::AVERAGE, RuleName::kAverage}, {Averaging::BMUF, RuleName::kBmuf},
      {Averaging::SLOWMO, RuleName::kSlowMo},   {Averaging::DILOCO, RuleName::kDiLoCo},
  };
  for (const Rule& rule : rules) {
    const bool gradients = rule.wire >= Averaging::SYNC && rule.wire <= Averaging::DOWNPOUR;
    for (const Rhythm& rhythm : {Rhythm{3, 0, 1}, Rhythm{3, 2, 1}, Rhythm{4, 0, 2}, Rhythm{4, 1, 2}}) {
      if (gradients && rhythm.fragments > 1) continue;
      SCOPED_TRACE(absl::StrCat(Averaging::Rule_Name(rule.wire), " ", rhythm.delay, " ", rhythm.fragments));
      server_.Stop();
      server_.Forget();
      server_.Start();
      v1::JobSpec job = Job(rule, {2, 2});
      SetRhythm(rhythm, job);
      const auto groups = Train(job, rule.name);
      const std::vector<float> center = Center();
      for (const uint64_t i : {uint64_t{0}, kParameters - 1}) EXPECT_NEAR(center[i], kTarget, 15);
      const bool in_rounds = rule.wire >= Averaging::AVERAGE;
      if (in_rounds) {
        EXPECT_EQ(groups[0], center);
        EXPECT_EQ(groups[1], center);
      }
      EXPECT_GT(center.back(), 0);  // The buffer: batches seen.
    }
  }
}

// One value, of a given fragment, of one group that trains on between sending and applying, in double precision: the
// center at the end.
double DelayedReference(const v1::JobSpec& job, uint64_t fragment) {
  const Averaging& averaging = job.averaging();
  const bool distances = averaging.rule() == Averaging::DILOCO;
  const bool downpour = averaging.rule() == Averaging::DOWNPOUR;
  std::vector<Sampler> samplers;
  for (uint32_t rank = 0; rank < job.groups().ranks(); ++rank) {
    SamplerOptions sampling;
    sampling.samples = kSamples;
    sampling.ranks = job.groups().ranks();
    sampling.batch = kBatch;
    sampling.seed = 9;
    sampling.rank = rank;
    samplers.push_back(*Sampler::Make(sampling));
  }
  double x = kStart, center = kStart, anchor = kStart, pending = 0, momentum = 0;
  double sent = 0, x_sent = 0;
  const uint64_t fragments = averaging.fragments(), stride = averaging.interval() / fragments;
  uint64_t begun = 0;  // 0: none is in flight.
  const uint64_t total = samplers[0].steps_per_epoch() * job.train().epochs();
  for (uint64_t step = 1, last_sent = 0; step <= total; ++step) {
    double target = 0;
    for (Sampler& sampler : samplers) {
      for (const uint32_t index : sampler.BatchIndices(step - 1)) target += index % 7;
    }
    const double gradient = x - target / (kBatch * job.groups().ranks());
    pending += gradient;
    if (distances || downpour) x -= kRate * gradient;
    const auto settle = [&] {
      if (begun == 0) return;
      x = distances ? center + (x - x_sent) : center;
      anchor = center;
      pending -= sent;
      begun = 0;
    };
    if (step == begun + averaging.delay() || step == total) settle();
    const bool turn = step % stride == 0 && (step / stride - 1) % fragments == fragment;
    if (!turn && step != total) continue;
    begun = step;
    x_sent = x;
    sent = distances ? anchor - x : pending;
    if (distances) {
      // The last exchange may be of fewer steps than an interval: docs/rules/average.md.
      const double m = averaging.momentum();
      const double decay = std::pow(m, static_cast<double>(step - last_sent) / averaging.interval());
      const double push = m * (1 - decay) / (1 - m);
      center -= averaging.learning_rate() * ((1 + m) * sent + m * push * momentum);
      momentum = decay * momentum + sent;
    } else {
      center -= kRate * sent / (downpour ? 1.0 : static_cast<double>(step - last_sent));
    }
    last_sent = step;
    if (step == total || averaging.delay() == 0) settle();
  }
  return center;
}

// What a group does between sending and applying is neither lost nor counted twice: gradients wait for the next
// exchange, and distances stay with the group. So it is by the formula, and over all layers.
TEST_F(RulesTest, DelayedAnswersAreExact) {
  const Rule rules[] = {{Averaging::SYNC, RuleName::kSync},
                        {Averaging::ASYNC, RuleName::kAsync},
                        {Averaging::SSP, RuleName::kSsp},
                        {Averaging::DOWNPOUR, RuleName::kDownpour},
                        {Averaging::DILOCO, RuleName::kDiLoCo}};
  for (const Rule& rule : rules) {
    for (const Rhythm& rhythm : {Rhythm{5, 1, 1}, Rhythm{5, 3, 1}, Rhythm{6, 0, 2}, Rhythm{6, 2, 2}}) {
      if (rule.wire != Averaging::DILOCO && rhythm.fragments > 1) continue;
      SCOPED_TRACE(absl::StrCat(Averaging::Rule_Name(rule.wire), " ", rhythm.delay, " ", rhythm.fragments));
      server_.Stop();
      server_.Forget();
      server_.Start();
      v1::JobSpec job = Job(rule, {1, 2});
      job.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
      SetRhythm(rhythm, job);
      Train(job, rule.name);
      // The first rank's blocks are one of each fragment.
      const std::vector<float> center = Center();
      EXPECT_NEAR(center[0], DelayedReference(job, 0), 1e-4);
      EXPECT_NEAR(center[kBlockValues], DelayedReference(job, rhythm.fragments - 1), 1e-4);
    }
  }
}

// A server that has lost its disk gets its shard again from where the groups' distances begin, of every rank's slice.
// So what they send then counts once, and the job ends to the bit as if nothing had happened.
TEST_F(RulesTest, ALostShardIsMadeAgainFromWhatTheCenterWas) {
  const Rule rules[] = {{Averaging::AVERAGE, RuleName::kAverage}, {Averaging::DOWNPOUR, RuleName::kDownpour}};
  for (const Rule& rule : rules) {
    SCOPED_TRACE(Averaging::Rule_Name(rule.wire));
    const v1::JobSpec job = Job(rule, {1, 2});  // Exchanges after steps 3, 6, 9, ...
    std::vector<std::vector<float>> centers;
    for (const bool loses : {false, true}) {
      server_.Stop();
      server_.Forget();
      server_.Start();
      std::atomic<bool> lost{!loses};
      on_step_ = [&](uint64_t step) {
        if (step != 8 || lost.exchange(true)) return;
        server_.Stop();
        server_.Forget();
        server_.Start();
      };
      Train(job, rule.name);
      centers.push_back(Center());
    }
    EXPECT_EQ(centers[0], centers[1]);
  }
}

// Servers that are away for a while do not lose steps: the gradients of the meantime arrive together.
TEST_F(RulesTest, GradientsOfAnOutageArriveTogether) {
  const Rule sync = {Averaging::SYNC, RuleName::kSync};
  v1::JobSpec job = Job(sync, {1, 1});
  job.mutable_averaging()->set_interval(1);
  job.mutable_averaging()->set_grace_seconds(0);
  exchange_timeout_ = absl::Milliseconds(300);
  on_step_ = [this](uint64_t step) {
    if (step == 4) server_.Stop();
    if (step == 7) server_.Start();
  };
  const std::vector<float> group = Train(job, sync.name)[0];
  EXPECT_EQ(group, Center());
  EXPECT_NEAR(group[0], kTarget, 3);
  EXPECT_EQ(group.back(), 48);  // Every step counted: 2 epochs of 24.
}

}  // namespace
}  // namespace hooke
