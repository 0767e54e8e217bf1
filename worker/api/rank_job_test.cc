#include "worker/api/rank_job.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/api/rank_job_ranks.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/exchange/restartable_server_test.h"
#include "worker/exchange/server_calls.h"
#include "worker/report/reporter.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kRate = 0.25f;

// A program's model: a matrix, a bias and a buffer. The gradient of each parameter w is w - target.
class Program {
 public:
  Program() {
    tensors = {Tensor("matrix", shape_, matrix_), Tensor("bias", absl::MakeSpan(shape_, 1), bias_),
               Tensor("count", {}, count_)};
    tensors[2].kind = HOOKE_BUFFER;
  }

  static hooke_tensor Tensor(const char* name, absl::Span<const uint64_t> shape, float* values) {
    hooke_tensor tensor = {};
    tensor.name = name;
    tensor.shape = shape.data();
    tensor.dimensions = static_cast<uint32_t>(shape.size());
    tensor.device = HOOKE_HOST;
    tensor.values = values;
    return tensor;
  }

  absl::Span<float> Values(size_t i) const {
    const uint64_t sizes[] = {6, 2, 1};
    return absl::MakeSpan(static_cast<float*>(tensors[i].values), sizes[i]);
  }
  std::vector<float> All() const {
    std::vector<float> all;
    for (size_t i = 0; i < 3; ++i) all.insert(all.end(), Values(i).begin(), Values(i).end());
    return all;
  }

  void SetAll(const std::vector<float>& all) const {
    auto from = all.begin();
    for (size_t i = 0; i < 3; ++i) {
      for (float& value : Values(i)) value = *from++;
    }
  }

  void Backward(float target) const {
    for (size_t i = 0; i < 2; ++i) {
      const absl::Span<float> values = Values(i);
      for (size_t j = 0; j < values.size(); ++j) static_cast<float*>(tensors[i].gradient)[j] = values[j] - target;
    }
    Values(2)[0] += 1;
  }
  void Step() const {
    for (size_t i = 0; i < 2; ++i) {
      const absl::Span<float> values = Values(i);
      for (size_t j = 0; j < values.size(); ++j) values[j] -= kRate * static_cast<const float*>(tensors[i].gradient)[j];
    }
  }

  std::vector<hooke_tensor> tensors;

 private:
  const uint64_t shape_[2] = {2, 3};
  float matrix_[6] = {1, 2, 3, 4, 5, 6};
  float bias_[2] = {7, 8};
  float count_[1] = {0};
};

class RankJobTest : public ::testing::Test {
 protected:
  using Body = std::function<void(RankJob& job, Program& program, int rank)>;

  RankJobTest() {
    start_.set_task(v1::GroupStart::TRAIN);
    start_.set_incarnation(1);
    start_.set_job_id("job-1");
    start_.set_job_key("key");
    start_.mutable_job()->mutable_groups()->set_count(1);
    start_.mutable_job()->mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
    start_.mutable_job()->mutable_averaging()->set_alpha(0.5);
    start_.mutable_job()->mutable_averaging()->set_interval(3);
    start_.mutable_job()->mutable_averaging()->set_servers(1);
  }

  void UseServer() { start_.add_servers("first:1"); }

  // Runs `body` on each rank of a new group.
  void Run(int ranks, const Body& body) {
    start_.mutable_job()->mutable_groups()->set_ranks(static_cast<uint32_t>(ranks));
    RunRankJobs(start_, ranks, dial_, [&](RankJob& job, Reporter& reporter, int rank) {
      Program program;
      body(job, program, rank);
      if (rank != 0) return;
      absl::MutexLock lock(&mutex_);
      progress_ = reporter.Progress();
    });
  }

  static void Begin(RankJob& job, Program& program, const hooke_plan& plan, uint64_t expected_step = 0) {
    ASSERT_TRUE(job.Register(absl::MakeSpan(program.tensors)).ok());
    const absl::StatusOr<uint64_t> step = job.Begin(plan);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(*step, expected_step);
  }

  // Makes steps until the group has done `end` of them.
  static void Train(RankJob& job, Program& program, uint64_t end, float target) {
    while (job.step() < end) {
      program.Backward(target);
      ASSERT_TRUE(job.Combine(1, nullptr).ok());
      if (job.Place().steps_locally != 0) program.Step();
      const absl::StatusOr<uint64_t> step = job.EndStep({4, 0});
      ASSERT_TRUE(step.ok()) << step.status();
    }
  }

  v1::GroupStart start_;
  InMemoryServer server_{"first:1"};
  ServerDialer dial_ = [this](const std::string&) { return server_.Dial(); };
  absl::Mutex mutex_;
  v1::RankProgress progress_ ABSL_GUARDED_BY(mutex_);
};

// Several ranks make the same steps as one rank with the mean of their targets. It does not matter for which gradients
// GradientReady is called, or in which order.
TEST_F(RankJobTest, CombinesGradients) {
  std::vector<float> one;
  Run(1, [&](RankJob& job, Program& program, int) {
    Begin(job, program, {});
    Train(job, program, 5, 3);
    one = program.All();
  });
  for (int ranks : {2, 3}) {
    Run(ranks, [&](RankJob& job, Program& program, int rank) {
      Begin(job, program, {});
      while (job.step() < 5) {
        program.Backward(static_cast<float>(3 + rank * 2 - (ranks - 1)));
        if (rank != 1) {
          EXPECT_TRUE(job.GradientReady(job.step() % 2).ok());
        }
        if (rank == 0) {
          EXPECT_TRUE(job.GradientReady((job.step() + 1) % 2).ok());
        }
        ASSERT_TRUE(job.Combine(1, nullptr).ok());
        program.Step();
        ASSERT_TRUE(job.EndStep({}).ok());
      }
      for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(program.All()[i], one[i], 1e-5) << i;
      EXPECT_TRUE(job.Finish().ok());
    });
  }
}

// The last value of each of the program's metrics comes with the progress. A name that is not allowed is refused, also
// in an evaluation, and the error says what is allowed.
TEST_F(RankJobTest, ReportsMetrics) {
  Run(2, [&](RankJob& job, Program& program, int rank) {
    Begin(job, program, {});
    for (const double value : {30.0, 21.5}) {
      const hooke_metric metrics[] = {{"perplexity", value}, {"learning rate", 0.5}};
      EXPECT_TRUE(job.Report(metrics).ok());
    }
    const hooke_metric bad[] = {{rank == 0 ? nullptr : "a\nb", 1}};
    for (const absl::Status& status : {job.Report(bad), job.Evaluated(0, 0, 0, bad)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("1 to 64 bytes of visible UTF-8"));
    }
    Train(job, program, 1, 3);
    EXPECT_TRUE(job.Finish().ok());
  });
  absl::MutexLock lock(&mutex_);
  ASSERT_EQ(progress_.metrics_size(), 2);
  EXPECT_EQ(progress_.metrics(0).name(), "perplexity");
  EXPECT_EQ(progress_.metrics(0).value(), 21.5);
}

// A rank's wish to stop comes to all ranks with the next gradients.
TEST_F(RankJobTest, OneRankStopsTheGroup) {
  for (const bool with_server : {false, true}) {
    if (with_server) UseServer();
    Run(3, [&](RankJob& job, Program& program, int rank) {
      EXPECT_EQ(job.Stop().code(), absl::StatusCode::kFailedPrecondition);
      Begin(job, program, {100, 0, 0});
      Train(job, program, 4, 3);
      EXPECT_FALSE(*job.Stopping());
      if (rank == 2) {
        EXPECT_TRUE(job.Stop().ok());
      }
      EXPECT_FALSE(*job.Stopping());
      Train(job, program, 5, 3);
      EXPECT_TRUE(*job.Stopping());
      EXPECT_TRUE(job.Finish().ok());
    });
  }
  EXPECT_THAT(server_.ended(), ElementsAre(0));
}

// After an exchange of all values that every server has answered there is nothing left to send. A zero gradient would
// move the center by its momentum.
TEST_F(RankJobTest, TheEndSendsNoZerosAfterTheLastStep) {
  UseServer();
  start_.mutable_job()->mutable_averaging()->set_rule(v1::AveragingSpec::ASYNC);
  start_.mutable_job()->mutable_averaging()->set_interval(3);
  start_.mutable_job()->mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  start_.mutable_job()->mutable_train()->mutable_optimizer()->set_learning_rate(0.1);
  start_.mutable_job()->mutable_train()->mutable_optimizer()->set_momentum(0.9);
  Run(2, [&](RankJob& job, Program& program, int) {
    Begin(job, program, {});
    Train(job, program, 6, 3);
    ASSERT_TRUE(job.Collective([](Group& group) { return group.Barrier(); }).ok());
    const std::vector<float> center = server_.center();
    EXPECT_TRUE(job.Finish().ok());
    EXPECT_EQ(server_.center(), center);
  });
}

// Ranks that register different lists all get the same error, which names the first tensor that differs.
TEST_F(RankJobTest, ListsMustBeEqual) {
  const uint64_t other_shape[] = {3, 2};
  struct Case {
    std::function<void(Program&)> change;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {[](Program& program) { program.tensors[1].name = "offset"; },
       "number 1 is float32 parameter bias [2] on rank 0 and float32 parameter offset [2] on rank 2"},
      {[&](Program& program) { program.tensors[0].shape = other_shape; },
       "number 0 is float32 parameter matrix [2 x 3] on rank 0 and float32 parameter matrix [3 x 2] on rank 2"},
      {[](Program& program) { program.tensors.pop_back(); },
       "number 2 is float32 buffer count [] on rank 0 and nothing on rank 2"},
      {[](Program& program) { program.tensors[2].kind = HOOKE_PARAMETER; },
       "number 2 is float32 buffer count [] on rank 0 and float32 parameter count [] on rank 2"},
      {[](Program& program) { program.tensors[1].type = HOOKE_BFLOAT16; },
       "number 1 is float32 parameter bias [2] on rank 0 and bfloat16 parameter bias [2] on rank 2"},
  };
  for (const Case& c : cases) {
    Run(3, [&](RankJob& job, Program& program, int rank) {
      if (rank == 2) c.change(program);
      const absl::Status status = job.Register(absl::MakeSpan(program.tensors));
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected));
      EXPECT_EQ(job.Begin({}).status(), status) << "the group is lost";
    });
  }
}

// A tensor that cannot be registered is refused on all ranks, with the reason.
TEST_F(RankJobTest, RefusesTensors) {
  const uint64_t large[] = {uint64_t{1} << 40, 1024};
  struct Case {
    std::function<void(Program&)> change;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {[](Program& program) { program.tensors[1].name = ""; }, "tensor 1 () has no name"},
      {[](Program& program) { program.tensors[1].name = "a\nb"; }, "has a name that is not visible UTF-8"},
      {[](Program& program) { program.tensors[1].name = "matrix"; }, "tensor 1 (matrix) has the name of another one"},
      {[](Program& program) { program.tensors[1].type = HOOKE_FLOAT64; }, "tensor 1 (bias) is float64; Hooke trains"},
      {[](Program& program) { program.tensors[1].type = 77; }, "tensor 1 (bias) is unknown type; Hooke trains"},
      {[](Program& program) { program.tensors[1].device = 0; }, "tensor 1 (bias) is on device 0"},
      {[](Program& program) { program.tensors[1].kind = 7; }, "is neither a parameter nor a buffer"},
      {[](Program& program) { program.tensors[1].dimensions = 17; }, "has more than 16 dimensions"},
      {[](Program& program) { program.tensors[1].values = nullptr; }, "has no values"},
      {[&](Program& program) { program.tensors[0].shape = large; }, "tensor 0 (matrix) is too large"},
      {[](Program& program) { std::swap(program.tensors[1], program.tensors[2]); },
       "tensor 2 (bias) is a parameter behind a buffer"},
  };
  for (const Case& c : cases) {
    Run(2, [&](RankJob& job, Program& program, int rank) {
      if (rank == 1) c.change(program);
      const absl::Status status = job.Register(absl::MakeSpan(program.tensors));
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected));
    });
  }
}

// Calls in a wrong order say what must come first, and the group can go on.
TEST_F(RankJobTest, OrderOfCalls) {
  Run(1, [](RankJob& job, Program& program, int) {
    auto expect = [](const absl::Status& status, const std::string& part) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    };
    expect(job.Begin({}).status(), "register the tensors first");
    expect(job.Combine(1, nullptr).status(), "training has not begun");
    expect(job.Finish(), "training has not begun");
    EXPECT_FALSE(job.NeedsFinish());
    Begin(job, program, {});
    EXPECT_TRUE(job.NeedsFinish());
    expect(job.Register(absl::MakeSpan(program.tensors)), "tensors are registered already");
    expect(job.Begin({}).status(), "training has begun already");
    expect(job.EndStep({}).status(), "there was no hooke_combine since the last step");
    expect(job.ValuesDue().status(), "call hooke_combine first");
    EXPECT_TRUE(job.GradientReady(1).ok());
    expect(job.GradientReady(1), "the gradient of bias is ready already");
    EXPECT_EQ(job.GradientReady(2).code(), absl::StatusCode::kInvalidArgument) << "a buffer has no gradient";
    expect(job.Collective([](Group& group) { return group.Barrier(); }), "call hooke_combine first");
    expect(job.WithCenter([] { return absl::OkStatus(); }), "call hooke_combine first");
    expect(job.Finish(), "call hooke_combine first");
    EXPECT_TRUE(job.Combine(1, nullptr).ok());
    EXPECT_TRUE(job.EndStep({}).ok());
    expect(job.EndStep({}).status(), "there was no hooke_combine since the last step");
    EXPECT_TRUE(job.Finish().ok());
    expect(job.Combine(1, nullptr).status(), "has ended");
    EXPECT_FALSE(job.NeedsFinish());
  });
}

// The mean loss is the mean over the ranks that know their loss. A step without EndStep does not change the number of
// steps.
TEST_F(RankJobTest, Losses) {
  Run(3, [](RankJob& job, Program& program, int rank) {
    Begin(job, program, {});
    EXPECT_FLOAT_EQ(*job.Combine(static_cast<float>(rank), nullptr), 1);
    EXPECT_FLOAT_EQ(*job.Combine(rank == 0 ? std::nanf("") : static_cast<float>(rank), nullptr), 1.5);
    EXPECT_TRUE(std::isnan(*job.Combine(std::nanf(""), nullptr)));
    EXPECT_EQ(*job.EndStep({}), 1u);
    EXPECT_TRUE(std::isinf(*job.Combine(rank == 1 ? INFINITY : 1, nullptr)));
    const absl::Status diverged = job.EndStep({}).status();
    EXPECT_EQ(diverged.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(diverged.message()), HasSubstr("training has diverged: the loss at step 2 is inf"));
  });
}

// All ranks learn which gradients at least one rank has computed.
TEST_F(RankJobTest, UsedGradients) {
  Run(3, [](RankJob& job, Program& program, int rank) {
    Begin(job, program, {});
    uint8_t used[] = {0, static_cast<uint8_t>(rank == 2 ? 1 : 0)};
    EXPECT_TRUE(job.Combine(1, used).ok());
    EXPECT_THAT(used, ElementsAre(0, 1));
  });
}

// After the number of groups has changed, the program learns what the earlier groups have done, steps count on from the
// generation's first one, and the epoch from what is done.
TEST_F(RankJobTest, GoesOnInALaterGeneration) {
  v1::Generation& first = *start_.add_earlier();
  for (const auto& [ranks, last_step] : {std::pair(2, 12), std::pair(1, 9)}) {
    v1::GenerationGroup& group = *first.add_groups();
    group.set_ranks(static_cast<uint32_t>(ranks));
    group.set_last_step(static_cast<uint64_t>(last_step));
  }
  v1::Generation& second = *start_.add_earlier();
  second.set_first_step(12);
  second.add_groups()->set_ranks(1);
  second.mutable_groups(0)->set_last_step(12);  // The user has changed the number twice, and no step lay between.
  start_.set_first_step(13);
  start_.set_first_incarnation(7);
  start_.set_incarnation(7);
  struct Case {
    hooke_plan plan;
    double epochs;  // At the end, after 5 steps.
    uint64_t total;
  };
  const Case cases[] = {{{18, 10, 2.5}, 3, 18},
                        // (2 x 12 + 1 x 9) steps of a rank; 10 steps of 2 ranks are an epoch.
                        {{18, 10, 0}, 33.0 / 20 + 0.5, 18},
                        {{0, 0, 0}, 0, 0},
                        {{5, 10, 1}, 1.5, 13}};
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat("of ", c.plan.steps_total, " steps, ", c.plan.epochs_done, " epochs done"));
    Run(2, [&](RankJob& job, Program& program, int) {
      const absl::Span<const hooke_generation> earlier = job.EarlierGenerations();
      ASSERT_EQ(earlier.size(), 2u);
      ASSERT_EQ(earlier[0].groups, 2u);
      EXPECT_EQ(earlier[0].first_step, 0u);
      EXPECT_EQ(earlier[0].shares[0].ranks, 2u);
      EXPECT_EQ(earlier[0].shares[0].last_step, 12u);
      EXPECT_EQ(earlier[0].shares[1].ranks, 1u);
      EXPECT_EQ(earlier[0].shares[1].last_step, 9u);
      ASSERT_EQ(earlier[1].groups, 1u);
      EXPECT_EQ(earlier[1].first_step, 12u);
      EXPECT_EQ(job.first_step(), 13u);
      Begin(job, program, c.plan, 13);
      Train(job, program, 18, 3);
      EXPECT_TRUE(job.Finish().ok());
    });
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(progress_.step(), 18u);
    EXPECT_EQ(progress_.steps_total(), c.total);
    EXPECT_NEAR(progress_.epoch(), c.epochs, 1e-12);
  }
}

TEST_F(RankJobTest, EpochsDoneThatAreNoNumberOfEpochs) {
  for (const double epochs : {-1.0, std::nan(""), static_cast<double>(INFINITY)}) {
    Run(1, [&](RankJob& job, Program& program, int) {
      ASSERT_TRUE(job.Register(absl::MakeSpan(program.tensors)).ok());
      const absl::Status status = job.Begin({10, 5, epochs}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("epochs_done is "));
    });
  }
}

// Training exchanges at each interval. When it ends, after any step, the center has the last values. A restarted group
// goes on from there.
TEST_F(RankJobTest, ExchangesAndEnds) {
  UseServer();
  struct Case {
    uint64_t steps_total;
    uint64_t end;
    uint64_t exchanges;
    uint64_t goes_on_at;
  };
  for (const Case& c : {Case{7, 7, 3, 7}, Case{0, 7, 3, 7}, Case{0, 6, 2, 6}, Case{9, 5, 2, 5}, Case{0, 0, 0, 0}}) {
    SCOPED_TRACE(absl::StrCat("steps ", c.end, " of ", c.steps_total));
    server_.Forget();
    start_.set_incarnation(1);
    Run(2, [&](RankJob& job, Program& program, int) {
      Begin(job, program, {c.steps_total, 0, 0});
      Train(job, program, c.end, 3);
      EXPECT_TRUE(job.Finish().ok());
    });
    {
      absl::MutexLock lock(&mutex_);
      EXPECT_EQ(progress_.exchanges(), c.exchanges);
    }
    const std::vector<float> center = server_.center();
    start_.set_incarnation(2);
    Run(2, [&](RankJob& job, Program& program, int) {
      program.Values(0)[0] = 1000;
      Begin(job, program, {c.steps_total, 0, 0}, c.goes_on_at);
      std::vector<float> all = program.All();
      all.resize(center.size());
      EXPECT_EQ(all, center);
    });
  }
}

// A program that keeps its values elsewhere ends with the same values as one that does not. At all times when it need
// not copy them, the registered values are NaN.
TEST_F(RankJobTest, ValuesElsewhere) {
  UseServer();
  std::vector<float> expected;
  Run(2, [&](RankJob& job, Program& program, int rank) {
    Begin(job, program, {});
    Train(job, program, 7, 3);
    EXPECT_TRUE(job.Finish().ok());
    if (rank == 0) expected = program.All();
  });
  server_.Forget();
  const std::vector<float> nothing(9, std::nanf(""));
  Run(2, [&](RankJob& job, Program& program, int) {
    Begin(job, program, {});
    std::vector<float> own = program.All();
    std::string due;
    while (job.step() < 7) {
      program.SetAll(own);
      program.Backward(3);
      const float count = program.Values(2)[0];
      program.SetAll(nothing);
      program.Values(2)[0] = count;
      ASSERT_TRUE(job.Combine(1, nullptr).ok());
      own.back() = program.Values(2)[0];
      program.SetAll(own);
      program.Step();
      own = program.All();
      const bool values_due = *job.ValuesDue();
      due += values_due ? "x" : "-";
      if (!values_due) program.SetAll(nothing);
      ASSERT_TRUE(job.EndStep({4, 0}).ok());
      if (values_due) own = program.All();
      program.SetAll(nothing);
    }
    EXPECT_EQ(due, "--x--x-");
    program.SetAll(own);
    EXPECT_TRUE(job.Finish().ok());
    EXPECT_EQ(program.All(), expected);
  });
}

// Inside WithCenter, the tensors have the center's values. Afterwards they have the group's own values again.
TEST_F(RankJobTest, ShowsTheCenter) {
  UseServer();
  Run(2, [&](RankJob& job, Program& program, int) {
    Begin(job, program, {});
    Train(job, program, 4, 3);
    const std::vector<float> own = program.All();
    std::vector<float> seen;
    std::vector<float> center;
    EXPECT_TRUE(job.WithCenter([&] {
                     seen = program.All();
                     center = server_.center();
                     return absl::OkStatus();
                   })
                    .ok());
    EXPECT_TRUE(job.Collective([](Group& group) { return group.Barrier(); }).ok());
    EXPECT_EQ(program.All(), own);
    EXPECT_NE(seen, own);
    seen.resize(center.size());
    EXPECT_EQ(seen, center);
    EXPECT_TRUE(job.Finish().ok());
  });
}

// Under the rule `sync` the servers step, and the program's optimizer does not. The model is one block, so the second
// server has no shard of it.
TEST_F(RankJobTest, ServersStep) {
  RestartableServer servers[2];
  for (const RestartableServer& server : servers) start_.add_servers(server.address());
  dial_ = [](const std::string& address) { return DialServer(address); };
  start_.mutable_job()->mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
  start_.mutable_job()->mutable_averaging()->set_interval(1);
  start_.mutable_job()->mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  start_.mutable_job()->mutable_train()->mutable_optimizer()->set_learning_rate(kRate);
  start_.mutable_job()->mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  Program alone;
  std::vector<float> gradients(8);
  alone.tensors[0].gradient = gradients.data();
  alone.tensors[1].gradient = gradients.data() + 6;
  for (int i = 0; i < 4; ++i) {
    alone.Backward(3);
    alone.Step();
  }
  Run(2, [&](RankJob& job, Program& program, int) {
    Begin(job, program, {});
    EXPECT_EQ(job.Place().steps_locally, 0u);
    EXPECT_EQ(std::string(job.Place().rule), "sync");
    Train(job, program, 4, 3);
    for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(program.All()[i], alone.All()[i], 1e-5) << i;
    EXPECT_TRUE(job.Finish().ok());
  });
}

// If the job counts something in epochs, the program's plan must have the length of an epoch.
TEST_F(RankJobTest, PlanMustSayWhatTheJobNeeds) {
  UseServer();
  v1::JobSpec& spec = *start_.mutable_job();
  spec.mutable_averaging()->set_rule(v1::AveragingSpec::SYNC);
  spec.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::COSINE);
  auto begin = [](RankJob& job, Program& program, int) {
    ASSERT_TRUE(job.Register(absl::MakeSpan(program.tensors)).ok());
    const absl::Status status = job.Begin({}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("needs the plan's steps_per_epoch"));
  };
  Run(2, begin);
  spec.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  spec.mutable_train()->mutable_schedule()->set_warmup_epochs(1);
  Run(2, begin);
  spec.mutable_averaging()->set_rule(v1::AveragingSpec::AVERAGE);
  spec.mutable_averaging()->set_post_local_epochs(1);
  spec.mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  Run(2, begin);
}

}  // namespace
}  // namespace hooke
