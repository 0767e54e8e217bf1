// Tests programs whose parameters and buffers are of 16 bits, alone or beside float32.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "mpi_group/data_type.h"
#include "mpi_group/reduce/reduce.h"
#include "proto/job.pb.h"
#include "proto/worker.pb.h"
#include "worker/api/rank_job.h"
#include "worker/api/rank_job_ranks.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/in_memory_server.h"
#include "worker/exchange/restartable_server_test.h"
#include "worker/exchange/server_calls.h"

namespace hooke {
namespace {

constexpr float kRate = 0.25f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Types = std::vector<uint32_t>;

std::vector<float> Read(uint32_t type, const void* from, uint64_t count) {
  std::vector<float> numbers(count);
  if (type == HOOKE_FLOAT32) {
    std::memcpy(numbers.data(), from, count * sizeof(float));
  } else {
    Widen(static_cast<DataType>(type), {static_cast<const char*>(from), 2 * count}, absl::MakeSpan(numbers));
  }
  return numbers;
}

void Write(uint32_t type, const std::vector<float>& numbers, void* to) {
  if (type == HOOKE_FLOAT32) {
    std::memcpy(to, numbers.data(), numbers.size() * sizeof(float));
  } else {
    Narrow(static_cast<DataType>(type), numbers, {static_cast<char*>(to), 2 * numbers.size()});
  }
}

// A program's model: parameters of 1, 3, 5, 70 and 1 values, and then a buffer of 3 and one of 1. The tensors take the
// given types in turn. The gradient of each parameter w is w - target.
class Program {
 public:
  explicit Program(const Types& types) {
    for (size_t i = 0; i < kTensors; ++i) {
      hooke_tensor tensor = {};
      names_.push_back(absl::StrCat("tensor", i));
      tensor.name = names_.back().c_str();
      tensor.shape = &kSizes[i];
      tensor.dimensions = 1;
      tensor.kind = i < kParameters ? HOOKE_PARAMETER : HOOKE_BUFFER;
      tensor.type = types[i % types.size()];
      tensor.device = HOOKE_HOST;
      first_.emplace_back(4 * kSizes[i]);
      tensor.values = first_.back().data();
      tensors.push_back(tensor);
      Set(i, std::vector<float>(kSizes[i], i < kParameters ? 1.5f : 0.0f));
    }
  }

  std::vector<float> Get(size_t i) const { return Read(tensors[i].type, tensors[i].values, kSizes[i]); }
  void Set(size_t i, const std::vector<float>& numbers) const { Write(tensors[i].type, numbers, tensors[i].values); }
  std::vector<float> Gradient(size_t i) const { return Read(tensors[i].type, tensors[i].gradient, kSizes[i]); }
  void SetGradient(size_t i, float number) const {
    Write(tensors[i].type, std::vector<float>(kSizes[i], number), tensors[i].gradient);
  }
  std::vector<float> All() const {
    std::vector<float> all;
    for (size_t i = 0; i < kTensors; ++i) {
      const std::vector<float> one = Get(i);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  void Backward(float target) const {
    for (size_t i = 0; i < kParameters; ++i) {
      std::vector<float> gradient = Get(i);
      for (float& number : gradient) number -= target;
      Write(tensors[i].type, gradient, tensors[i].gradient);
    }
    for (size_t i = kParameters; i < kTensors; ++i) Set(i, std::vector<float>(kSizes[i], target));
  }
  void Step() const {
    for (size_t i = 0; i < kParameters; ++i) {
      std::vector<float> values = Get(i);
      const std::vector<float> gradient = Gradient(i);
      for (size_t j = 0; j < values.size(); ++j) values[j] -= kRate * gradient[j];
      Set(i, values);
    }
  }

  static constexpr size_t kParameters = 5;
  static constexpr size_t kTensors = 7;
  std::vector<hooke_tensor> tensors;

 private:
  static constexpr uint64_t kSizes[kTensors] = {1, 3, 5, 70, 1, 3, 1};
  std::vector<std::string> names_ = Names();
  std::vector<std::vector<char>> first_;

  // The tensors point to the names, so these must not move.
  static std::vector<std::string> Names() {
    std::vector<std::string> names;
    names.reserve(kTensors);
    return names;
  }
};

const std::vector<std::pair<std::string, Types>>& AllTypes() {
  static const auto* const all = new std::vector<std::pair<std::string, Types>>{
      {"Float32", {HOOKE_FLOAT32}},
      {"BFloat16", {HOOKE_BFLOAT16}},
      {"Float16", {HOOKE_FLOAT16}},
      {"Mixed", {HOOKE_BFLOAT16, HOOKE_FLOAT32, HOOKE_FLOAT16}},
      {"BesideFloat32", {HOOKE_FLOAT32, HOOKE_BFLOAT16}},
  };
  return *all;
}

class RankJobTypesTest : public ::testing::TestWithParam<std::pair<std::string, Types>> {
 protected:
  using Body = std::function<void(RankJob& job, Program& program, int rank)>;

  RankJobTypesTest() {
    start_.set_task(v1::GroupStart::TRAIN);
    start_.set_incarnation(1);
    start_.set_job_id("job-1");
    start_.set_job_key("key");
    v1::JobSpec& job = *start_.mutable_job();
    job.mutable_groups()->set_count(1);
    job.mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
    job.mutable_averaging()->set_alpha(0.25);
    job.mutable_averaging()->set_interval(1);
    job.mutable_averaging()->set_servers(1);
    job.mutable_collectives()->set_bucket_mib(1e-9);  // Each gradient travels by itself.
  }

  void UseServer() { start_.add_servers("first:1"); }

  // Uses a real server, which steps the center by `rule` with SGD of a constant rate.
  void LetServerStep(const RestartableServer& server, v1::AveragingSpec::Rule rule) {
    start_.add_servers(server.address());
    dial_ = [](const std::string& address) { return DialServer(address); };
    start_.mutable_job()->mutable_averaging()->set_rule(rule);
    start_.mutable_job()->mutable_train()->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
    start_.mutable_job()->mutable_train()->mutable_optimizer()->set_learning_rate(kRate);
    start_.mutable_job()->mutable_train()->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  }

  // Runs `body` on each rank of a new group, with a program that is registered and has begun.
  void Run(int ranks, const Body& body) {
    start_.mutable_job()->mutable_groups()->set_ranks(static_cast<uint32_t>(ranks));
    RunRankJobs(start_, ranks, dial_, [&](RankJob& job, Reporter&, int rank) {
      Program program(GetParam().second);
      ASSERT_TRUE(job.Register(absl::MakeSpan(program.tensors)).ok());
      ASSERT_TRUE(job.Begin({}).ok());
      body(job, program, rank);
    });
  }

  static void Train(RankJob& job, const Program& program, uint64_t steps, float target) {
    for (uint64_t i = 0; i < steps; ++i) {
      program.Backward(target);
      ASSERT_TRUE(job.Combine(1, nullptr).ok());
      if (job.Place().steps_locally != 0) program.Step();
      ASSERT_TRUE(job.EndStep({}).ok());
    }
  }

  // What a value near 3 may differ by, after a few steps.
  static float Tolerance() { return GetParam().first == "Float32" ? 1e-5f : 0.02f; }

  v1::GroupStart start_;
  InMemoryServer server_{"first:1"};
  ServerDialer dial_ = [this](const std::string&) { return server_.Dial(); };
};

INSTANTIATE_TEST_SUITE_P(All, RankJobTypesTest, testing::ValuesIn(AllTypes()),
                         [](const auto& info) { return info.param.first; });

// Several ranks make the same steps as one rank with the mean of their targets, in every issue order.
TEST_P(RankJobTypesTest, RanksTrainAsOne) {
  std::vector<float> one;
  Run(1, [&](RankJob& job, Program& program, int) {
    Train(job, program, 3, 3);
    one = program.All();
  });
  for (const auto order :
       {v1::CollectivesSpec::FUNNELED, v1::CollectivesSpec::CONCURRENT, v1::CollectivesSpec::CHAINED}) {
    start_.mutable_job()->mutable_collectives()->set_order(order);
    for (const int ranks : {2, 3}) {
      if (ranks > 2 && order != v1::CollectivesSpec::FUNNELED) continue;
      Run(ranks, [&](RankJob& job, Program& program, int rank) {
        while (job.step() < 3) {
          program.Backward(static_cast<float>(3 + rank * 2 - (ranks - 1)));
          for (size_t i = Program::kParameters; i-- > 0;) {
            if ((i + job.step() + static_cast<uint64_t>(rank)) % 3 == 0) continue;  // Combine takes this one.
            EXPECT_TRUE(job.GradientReady(i).ok());
          }
          ASSERT_TRUE(job.Combine(1, nullptr).ok());
          program.Step();
          ASSERT_TRUE(job.EndStep({}).ok());
        }
        const std::vector<float> all = program.All();
        for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(all[i], one[i], Tolerance()) << i;
        EXPECT_TRUE(job.Finish().ok());
      });
    }
  }
}

// A mean is right although the sum is out of float16's range. NaN and infinity of one rank reach all.
TEST_P(RankJobTypesTest, LargeAndNotFiniteGradients) {
  Run(2, [&](RankJob& job, Program& program, int rank) {
    program.Backward(0);
    program.SetGradient(0, 60'000);
    program.SetGradient(1, rank == 0 ? kInfinity : 1.0f);
    program.SetGradient(2, rank == 1 ? std::nanf("") : 1.0f);
    program.SetGradient(3, rank == 0 ? 1.0f : 3.0f);
    ASSERT_TRUE(job.Combine(1, nullptr).ok());
    EXPECT_NEAR(program.Gradient(0)[0], 60'000, 300);
    for (float number : program.Gradient(1)) EXPECT_EQ(number, kInfinity);
    for (float number : program.Gradient(2)) EXPECT_TRUE(std::isnan(number));
    for (float number : program.Gradient(3)) EXPECT_EQ(number, 2);
    EXPECT_TRUE(job.EndStep({}).ok());
  });
}

// Buffers become the mean of the ranks in each step.
TEST_P(RankJobTypesTest, Buffers) {
  Run(2, [&](RankJob& job, Program& program, int rank) {
    for (int step = 0; step < 3; ++step) {
      program.Backward(static_cast<float>(rank + step));
      ASSERT_TRUE(job.Combine(1, nullptr).ok());
      EXPECT_EQ(program.Get(5), std::vector<float>(3, 0.5f + static_cast<float>(step)));
      EXPECT_TRUE(job.EndStep({}).ok());
    }
  });
}

// With gradients of zero, an elastic exchange conserves the sum of the group and the center, although each pull is too
// small to change a 16-bit value.
TEST_P(RankJobTypesTest, ElasticConserves) {
  UseServer();
  constexpr double kAlpha = 0.0005;
  constexpr int kExchanges = 60;
  start_.mutable_job()->mutable_averaging()->set_alpha(kAlpha);
  Run(2, [&](RankJob& job, Program& program, int) {
    for (size_t i = 0; i < Program::kParameters; ++i) program.Set(i, std::vector<float>(program.Get(i).size(), 2.5f));
    for (int i = 0; i < kExchanges; ++i) {
      ASSERT_TRUE(job.Combine(1, nullptr).ok());
      ASSERT_TRUE(job.EndStep({}).ok());
    }
    ASSERT_TRUE(job.Collective([](Group& group) { return group.Barrier(); }).ok());
    const std::vector<float> center = server_.center();
    const std::vector<float> own = program.All();
    // The first distance was 1, and each exchange multiplies it by 1 - 2 alpha.
    const double distance = std::pow(1 - 2 * kAlpha, kExchanges);
    for (size_t i = 0; i < 80; ++i) {
      EXPECT_NEAR(center[i], 2 - distance / 2, 1e-3) << i;
      EXPECT_NEAR(own[i] + center[i], 4, 0.01) << i;  // The tolerance is more than half a step of bfloat16 at 2.
    }
    EXPECT_TRUE(job.Finish().ok());
  });
}

// The center's values come rounded: into WithCenter, and to a group that is started again.
TEST_P(RankJobTypesTest, CenterIsRounded) {
  UseServer();
  std::vector<float> center;
  Run(2, [&](RankJob& job, Program& program, int rank) {
    Train(job, program, 4, 3);
    const std::vector<float> own = program.All();
    std::vector<float> seen;
    std::vector<float> at_server;
    EXPECT_TRUE(job.WithCenter([&] {
                     seen = program.All();
                     at_server = server_.center();
                     return absl::OkStatus();
                   })
                    .ok());
    // The last exchange of another rank must not come before this rank has looked at the server.
    EXPECT_TRUE(job.Collective([](Group& group) { return group.Barrier(); }).ok());
    EXPECT_EQ(program.All(), own);
    EXPECT_NE(seen, own);
    for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], at_server[i], 0.01) << i;
    EXPECT_TRUE(job.Finish().ok());
    EXPECT_TRUE(job.Collective([](Group& group) { return group.Barrier(); }).ok());
    if (rank == 0) center = server_.center();
  });
  start_.set_incarnation(2);
  Run(2, [&](RankJob&, Program& program, int) {
    const std::vector<float> all = program.All();
    for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], center[i], 0.01) << i;
  });
}

// Where the servers step, they take the gradients as float32.
TEST_P(RankJobTypesTest, ServersStep) {
  RestartableServer server;
  LetServerStep(server, v1::AveragingSpec::SYNC);
  Run(2, [&](RankJob& job, Program& program, int) {
    EXPECT_EQ(job.Place().steps_locally, 0u);
    EXPECT_EQ(job.Place().sends_gradients, 1u);
    Train(job, program, 4, 3);
    const float expected = 3 - 1.5f * std::pow(1 - kRate, 4.0f);
    const std::vector<float> all = program.All();
    for (size_t i = 0; i < 80; ++i) EXPECT_NEAR(all[i], expected, Tolerance()) << i;
    EXPECT_TRUE(job.Finish().ok());
  });
}

// Under downpour both step: the program, and the servers with the gradients of 16 bits as float32. The group takes the
// center's values after each step, so it ends as if only the servers stepped.
TEST_P(RankJobTypesTest, DownpourTakesNarrowGradients) {
  RestartableServer server;
  LetServerStep(server, v1::AveragingSpec::DOWNPOUR);
  for (const int ranks : {1, 2}) {
    start_.set_job_id(absl::StrCat("job-of-", ranks));
    Run(ranks, [&](RankJob& job, Program& program, int) {
      EXPECT_EQ(job.Place().steps_locally, 1u);
      EXPECT_EQ(job.Place().sends_gradients, 1u);
      Train(job, program, 4, 3);
      const float expected = 3 - 1.5f * std::pow(1 - kRate, 4.0f);
      const std::vector<float> all = program.All();
      for (size_t i = 0; i < 80; ++i) EXPECT_NEAR(all[i], expected, Tolerance()) << i;
      EXPECT_TRUE(job.Finish().ok());
    });
  }
}

}  // namespace
}  // namespace hooke
