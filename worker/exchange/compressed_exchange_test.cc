// Tests compressed exchanges with a real parameter server on loopback, over each kind of stream. They compare the
// values that arrive, the sum of center and groups, and the center that each group sees.

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/compression.h"
#include "algorithms/elastic.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/grpc_server_calls.h"
#include "worker/exchange/restartable_server_test.h"
#include "worker/exchange/run_exchange.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr double kAlpha = 0.25;
constexpr uint64_t kValues = 9 * kBlockValues + 1001;
constexpr absl::Duration kPatience = absl::Seconds(30);
const DialOptions kStreams[] = {{true, true}, {false, true}, {false, false}};

std::vector<float> Wave(float phase) {
  std::vector<float> values(kValues);
  for (uint64_t i = 0; i < kValues; ++i)
    values[i] = std::sin(phase + static_cast<float>(i)) / static_cast<float>(1 + i % 7);
  return values;
}

bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<float> Rounded(const Encoding& encoding, std::vector<float> values) {
  RoundToEncoding(encoding, absl::MakeSpan(values));
  return values;
}

struct Job {
  Encoding encoding;
  v1::AveragingSpec::Rule rule = v1::AveragingSpec::ELASTIC;
};

// Three groups of one rank that share a center on one server. Each uses another kind of stream.
class Groups {
 public:
  Groups(const RestartableServer& server, const Job& job) : job_(job) {
    for (const DialOptions& stream : kStreams) calls_.push_back(DialServer(server.address(), stream));
    CenterOptions options;
    options.job.set_rule(job.rule);
    options.job.set_alpha(kAlpha);
    options.job.set_groups(3);
    options.job.set_ranks(1);
    if (job.encoding.compression != Compression::kNone) {
      options.job.set_compression(static_cast<uint32_t>(job.encoding.compression));
      options.job.set_top_k(job.encoding.top_k / 16384.0);
    }
    if (job.rule == v1::AveragingSpec::ASYNC) {
      options.job.set_interval(1);
      options.job.set_epochs(1);
      options.job.set_steps_per_epoch(100);
      options.job.set_parameters(kValues);
      options.job.mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
      options.job.mutable_optimizer()->set_learning_rate(0.5);
      options.job.mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
    }
    options.layout.parameters.push_back({"w", {kValues}});
    options.partition = Partition(kValues);
    options.servers = {calls_[0].get()};
    for (uint32_t group = 0; group < 3; ++group) {
      options.sender = Sender(group);
      centers_.push_back(std::make_unique<CenterClient>(options));
    }
  }

  v1::Sender Sender(uint32_t group) const {
    v1::Sender sender;
    sender.set_job_id(absl::StrCat("job-", static_cast<int>(job_.encoding.compression), "-", job_.rule));
    sender.set_group(group);
    sender.set_incarnation(1);
    return sender;
  }

  void Attach(const std::vector<float>& initial) {
    for (const std::unique_ptr<CenterClient>& center : centers_) {
      const absl::StatusOr<Attached> attached = center->Attach(initial, SteadyTime() + kPatience);
      ASSERT_TRUE(attached.ok()) << attached.status();
    }
  }

  std::vector<float> Center() const {
    std::vector<float> pulled(kValues);
    const absl::Status status = centers_[0]->Pull(absl::MakeSpan(pulled), SteadyTime() + kPatience);
    EXPECT_TRUE(status.ok()) << status;
    return pulled;
  }

  // Returns a group's exchange client. A small window makes messages of fewer blocks.
  std::unique_ptr<ExchangeClient> Client(uint32_t group, const Encoding& encoding, uint32_t window_blocks = 16) const {
    ExchangeOptions options;
    options.sender = Sender(group);
    options.partition = Partition(kValues);
    options.servers = {calls_[group].get()};
    options.encoding = encoding;
    options.answers_center = job_.rule == v1::AveragingSpec::ASYNC;
    options.window_blocks = window_blocks;
    return std::make_unique<ExchangeClient>(std::move(options));
  }

  static absl::Status Exchange(ExchangeClient& client, uint64_t sequence, const std::vector<float>& sent,
                               std::vector<float>& answer) {
    const AnswerSink keep = [&answer](const BlockAnswer& block) {
      std::copy(block.values.begin(), block.values.end(), answer.begin() + static_cast<std::ptrdiff_t>(block.first));
    };
    return RunExchange(client, {sequence, {kPatience, kPatience}}, sent, keep)[0].status;
  }

 private:
  const Job job_;
  std::vector<std::unique_ptr<ServerCalls>> calls_;
  std::vector<std::unique_ptr<CenterClient>> centers_;  // Indexed by group.
};

// Under the elastic rule the center moves by exactly the difference that is sent to the groups, bit by bit. So the sum
// of center and groups stays the same. One answer with another rounding would exceed the tolerance by far.
TEST(CompressedExchange, ElasticConserves) {
  const RestartableServer server("127.0.0.1");
  for (const Compression compression :
       {Compression::kNone, Compression::kFloat16, Compression::kBFloat16, Compression::kInt8, Compression::kInt4}) {
    const Encoding encoding = {compression, 0};
    Groups groups(server, {encoding});
    std::vector<float> center = Wave(0);
    groups.Attach(center);
    std::vector<std::vector<float>> x = {Wave(1), Wave(2), Wave(3)};
    const auto total = [&](uint64_t i) { return double{center[i]} + x[0][i] + x[1][i] + x[2][i]; };
    std::vector<double> before(kValues);
    for (uint64_t i = 0; i < kValues; ++i) before[i] = total(i);
    std::vector<std::unique_ptr<ExchangeClient>> clients;
    for (uint32_t g = 0; g < 3; ++g) clients.push_back(groups.Client(g, encoding, g == 1 ? 2 : 16));
    for (uint64_t sequence = 1; sequence <= 5; ++sequence) {
      for (uint32_t g = 0; g < 3; ++g) {
        std::vector<float> answer(kValues);
        const absl::Status status = Groups::Exchange(*clients[g], sequence, x[g], answer);
        ASSERT_TRUE(status.ok()) << status;
        std::vector<float> expected(kValues);
        ElasticDifference(kAlpha, Rounded(encoding, x[g]), center, absl::MakeSpan(expected));
        RoundToEncoding(encoding, absl::MakeSpan(expected));
        ASSERT_TRUE(Same(answer, expected)) << CompressionName(compression);
        MoveByAnswer(answer, absl::MakeSpan(center));
        ApplyElasticAnswer(answer, absl::MakeSpan(x[g]));
      }
    }
    ASSERT_TRUE(Same(groups.Center(), center)) << CompressionName(compression);
    for (uint64_t i = 0; i < kValues; ++i) ASSERT_NEAR(total(i), before[i], 1e-5) << CompressionName(compression);
  }
}

// All groups get bitwise the same center, over every kind of stream and with messages of one block or of four. The
// answer depends on the center alone, and the center itself is not rounded.
TEST(CompressedExchange, AllGroupsSeeTheSameCenter) {
  const RestartableServer server("127.0.0.1");
  for (uint8_t number = 1; number <= kCompressionMax; ++number) {
    const Encoding encoding = {static_cast<Compression>(number),
                               number == kCompressionMax ? TopKOf(0.02) : uint16_t{0}};
    Groups groups(server, {encoding, v1::AveragingSpec::ASYNC});
    groups.Attach(Wave(0));
    std::vector<float> moved = Wave(0);
    const std::vector<float> gradient = Wave(5);
    std::vector<float> answer(kValues);
    ASSERT_TRUE(Groups::Exchange(*groups.Client(0, encoding), 1, gradient, answer).ok());
    const std::vector<float> arrived = Rounded(encoding, gradient);
    for (uint64_t i = 0; i < kValues; ++i) moved[i] -= 0.5f * arrived[i];
    ASSERT_TRUE(Same(groups.Center(), moved)) << CompressionName(encoding.compression);
    const std::vector<float> expected = Rounded(AnswerEncoding(encoding, /*answers_center=*/true), moved);
    EXPECT_TRUE(Same(answer, expected)) << CompressionName(encoding.compression);
    for (uint32_t g = 0; g < 3; ++g) {
      std::vector<float> seen(kValues);
      const std::vector<float> nothing(kValues);
      ASSERT_TRUE(Groups::Exchange(*groups.Client(g, encoding, g == 0 ? 1 : 16), 2, nothing, seen).ok());
      EXPECT_TRUE(Same(seen, expected)) << CompressionName(encoding.compression) << " group " << g;
    }
  }
}

// If a group sends another type than the job's, the center does not change. The error names both types.
TEST(CompressedExchange, OtherTypesAreRefused) {
  const RestartableServer server("127.0.0.1");
  Groups groups(server, {{Compression::kInt8, 0}});
  groups.Attach(Wave(0));
  std::vector<float> answer(kValues);
  for (uint32_t g = 0; g < 3; ++g) {
    absl::Status status = Groups::Exchange(*groups.Client(g, {Compression::kFloat16, 0}), 1, Wave(1), answer);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("values are of type 2 (float16); the job's averaging.compression is int8, type 4 (int8)"));
    status = Groups::Exchange(*groups.Client(g, {}), 1, Wave(1), answer);
    EXPECT_THAT(std::string(status.message()), HasSubstr("values are of type 1 (float32)"));
  }
  EXPECT_TRUE(Same(groups.Center(), Wave(0)));
}

// Attach refuses a group with another compression than the center's, and top_k with a rule that it does not fit.
TEST(CompressedExchange, AttachRefusesAnotherCompression) {
  const RestartableServer server("127.0.0.1");
  const auto attach = [&](uint32_t compression, v1::AveragingSpec::Rule rule) {
    const std::unique_ptr<ServerCalls> calls = DialServer(server.address());
    v1::AttachRequest request;
    request.mutable_sender()->set_job_id("job-1");
    request.mutable_sender()->set_incarnation(1);
    v1::JobSpecForShard& job = *request.mutable_job();
    job.set_rule(rule);
    job.set_alpha(kAlpha);
    job.set_groups(1);
    job.set_ranks(1);
    job.set_shard_count(1);
    job.set_compression(compression);
    job.set_top_k(0.5);
    v1::Parameter* parameter = request.mutable_layout()->add_parameters();
    parameter->set_name("w");
    parameter->set_type(v1::Parameter::FLOAT32);
    parameter->add_shape(10);
    return calls->Attach(request, SteadyTime() + kPatience).status();
  };
  EXPECT_THAT(std::string(attach(7, v1::AveragingSpec::ELASTIC).message()), HasSubstr("job.compression is 7; 0 to 6"));
  EXPECT_THAT(std::string(attach(6, v1::AveragingSpec::ELASTIC).message()), HasSubstr("job.compression is top_k"));
  EXPECT_THAT(std::string(attach(6, v1::AveragingSpec::NONE).message()), HasSubstr("job.compression is top_k"));
  EXPECT_TRUE(attach(4, v1::AveragingSpec::ELASTIC).ok());
  const absl::Status differs = attach(2, v1::AveragingSpec::ELASTIC);
  EXPECT_EQ(differs.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(differs.message()),
      HasSubstr("job.compression differs: the center was made with int8, the group has float16; all groups of a "
                "job run with the same job file"));
}

}  // namespace
}  // namespace hooke
