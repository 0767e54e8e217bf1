// Error feedback: a later exchange sends what compression left out of an earlier one. It works for all rules of
// gradients or distances, because a group subtracts the values that the servers decoded, not the values that it
// encoded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "algorithms/center_rule.h"
#include "algorithms/compression.h"
#include "algorithms/group_rule.h"
#include "algorithms/sharding.h"

namespace hooke {
namespace {

constexpr uint64_t kValues = 1000;

std::vector<Encoding> Compressions() {
  return {{Compression::kFloat16, 0},
          {Compression::kBFloat16, 0},
          {Compression::kInt8, 0},
          {Compression::kInt4, 0},
          {Compression::kTopK, TopKOf(0.05)}};
}

std::vector<float> Normal(uint64_t seed, float scale) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(kValues);
  for (float& value : values) value = normal(random);
  return values;
}

// A group with one block of parameters. Send prepares a message, encodes it, and decodes it as the server does.
struct Member {
  std::unique_ptr<GroupRule> rule;
  std::vector<float> x;
  std::vector<float> sent;  // The values as the server decodes them.

  Member(RuleName name, const std::vector<float>& start)
      : rule(MakeGroupRule(name, {kValues, kValues, {0, kValues}})), x(start), sent(kValues) {
    rule->Begin(x);
  }
  void Send(const Encoding& encoding) {
    const Range all = {0, kValues};
    const absl::Span<const float> pending = rule->Prepare(x, {&all, 1});
    std::string bytes(EncodedBytes(encoding, kValues), '\0');
    EXPECT_TRUE(Encode(encoding, pending, absl::MakeSpan(&bytes[0], bytes.size())).ok());
    EXPECT_TRUE(Decode(encoding, bytes, absl::MakeSpan(sent)).ok());
  }
};

// Returns the center as all groups decode it.
std::vector<float> Answer(const Encoding& encoding, const std::vector<float>& center) {
  std::vector<float> answer = center;
  RoundToEncoding(AnswerEncoding(encoding, /*answers_center=*/true), absl::MakeSpan(answer));
  return answer;
}

// The gradient is the same in each of 500 steps. The total that the servers get differs from the true total only by
// what still waits to be sent. This holds even for values that are too small to be sent after one step.
TEST(ErrorFeedback, AllGradientsArriveInTheEnd) {
  const int steps = 500;
  const std::vector<float> gradient = Normal(1, 1);
  for (const Encoding& encoding : Compressions()) {
    Member group(RuleName::kSync, std::vector<float>(kValues));
    std::vector<double> arrived(kValues);
    for (int step = 0; step < steps; ++step) {
      group.rule->AddGradient(gradient);
      group.Send(encoding);
      for (uint64_t i = 0; i < kValues; ++i) arrived[i] += group.sent[i];
      group.rule->Take({0, group.sent, group.x}, absl::MakeSpan(group.x));
    }
    double worst = 0;
    for (uint64_t i = 0; i < kValues; ++i) {
      worst = std::max(worst, std::abs(arrived[i] - steps * double{gradient[i]}));
    }
    // top_k sends 5 % of the values in an exchange, so a value of average size is sent in about every 20th.
    const double allowed = encoding.compression == Compression::kTopK ? 0.1 * steps : 1;
    EXPECT_LT(worst, allowed) << CompressionName(encoding.compression);
  }
}

// A group makes the same move in each of 500 exchanges and sends distances. The part that compression left out stays in
// the group's parameters and is sent later.
TEST(ErrorFeedback, AllDistancesArriveInTheEnd) {
  const int exchanges = 500;
  const std::vector<float> way = Normal(2, 1);
  for (const Encoding& encoding : Compressions()) {
    Member group(RuleName::kAverage, std::vector<float>(kValues));
    std::vector<float> center(kValues);
    for (int exchange = 0; exchange < exchanges; ++exchange) {
      for (uint64_t i = 0; i < kValues; ++i) group.x[i] += way[i];
      group.Send(encoding);
      for (uint64_t i = 0; i < kValues; ++i) center[i] -= group.sent[i];
      group.rule->Take({0, group.sent, center}, absl::MakeSpan(group.x));
    }
    double worst = 0;
    double apart = 0;
    for (uint64_t i = 0; i < kValues; ++i) {
      worst = std::max(worst, std::abs(center[i] - exchanges * double{way[i]}));
      apart = std::max(apart, std::abs(group.x[i] - exchanges * double{way[i]}));
    }
    const double allowed = encoding.compression == Compression::kTopK ? 0.1 * exchanges : 1;
    EXPECT_LT(worst, allowed) << CompressionName(encoding.compression);
    EXPECT_LT(apart, 0.05) << CompressionName(encoding.compression);
  }
}

struct Job {
  RuleName rule;
  double rate;
  double momentum;
};

// Two groups with quadratic losses around one target come within 0.05 of the target. This holds with every compression,
// under rules of gradients and of distances.
TEST(ErrorFeedback, QuadraticsConverge) {
  const Job jobs[] = {{RuleName::kSync, 0.1, 0},    {RuleName::kAsync, 0.1, 0}, {RuleName::kDownpour, 0.02, 0},
                      {RuleName::kAverage, 1, 0},   {RuleName::kBmuf, 1, 0.5},  {RuleName::kSlowMo, 1, 0.5},
                      {RuleName::kDiLoCo, 0.7, 0.5}};
  const std::vector<float> target = Normal(3, 1);
  for (const Job& job : jobs) {
    for (const Encoding& encoding : Compressions()) {
      CenterRuleOptions options;
      options.rule = job.rule;
      options.groups = 2;
      options.optimizer.momentum = job.momentum;
      options.optimizer.nesterov = job.rule == RuleName::kDiLoCo;
      options.schedule.learning_rate = job.rate;
      const std::unique_ptr<CenterRule> rule = MakeCenterRule(options).value();
      std::vector<float> center(kValues);
      std::vector<float> state(kValues * rule->traits().state_values);
      std::vector<float> scratch(kValues);
      std::vector<Member> groups;
      groups.reserve(2);
      for (int g = 0; g < 2; ++g) groups.emplace_back(job.rule, center);
      CenterBlock block = {absl::MakeSpan(center), absl::MakeSpan(state), kValues, 0, 0};
      for (uint64_t exchange = 1; exchange <= 500; ++exchange) {
        std::vector<Contribution> all;
        for (uint32_t g = 0; g < 2; ++g) {
          std::vector<float> gradient(kValues);
          for (uint64_t i = 0; i < kValues; ++i) gradient[i] = groups[g].x[i] - target[i];
          if (groups[g].rule->StepsLocally()) {
            for (uint64_t i = 0; i < kValues; ++i) groups[g].x[i] -= 0.1f * gradient[i];
          }
          groups[g].rule->AddGradient(gradient);
          groups[g].Send(encoding);
          all.push_back({g, exchange, 1, 0, groups[g].sent});
        }
        if (rule->traits().in_rounds) {
          ++block.update;
          rule->Apply(all, block, absl::MakeSpan(scratch));
        }
        for (uint32_t g = 0; g < 2; ++g) {
          if (!rule->traits().in_rounds) {
            ++block.update;
            rule->Apply({&all[g], 1}, block, absl::MakeSpan(scratch));
          }
          const std::vector<float> answer = Answer(encoding, center);
          groups[g].rule->Take({0, groups[g].sent, answer}, absl::MakeSpan(groups[g].x));
        }
      }
      double worst = 0;
      for (uint64_t i = 0; i < kValues; ++i) worst = std::max(worst, std::abs(double{center[i]} - target[i]));
      EXPECT_LT(worst, 0.05) << rule->name() << " " << CompressionName(encoding.compression);
    }
  }
}

}  // namespace
}  // namespace hooke
