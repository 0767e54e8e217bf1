#include "algorithms/elastic.h"

#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

std::vector<float> RandomVector(std::mt19937_64& random, size_t values) {
  std::normal_distribution<float> normal;
  std::vector<float> v(values);
  for (float& x : v) x = normal(random);
  return v;
}

// A center and groups that take no gradient steps. An exchange has two halves: the center moves, and later the answer
// arrives at the group.
struct Springs {
  double alpha;
  std::vector<float> center;
  std::vector<std::vector<float>> groups;
  std::vector<std::deque<std::vector<float>>> answers_on_the_way;

  Springs(std::mt19937_64& random, uint32_t count, size_t values)
      : alpha(DefaultElasticAlpha(count)), center(RandomVector(random, values)), answers_on_the_way(count) {
    for (uint32_t g = 0; g < count; ++g) groups.push_back(RandomVector(random, values));
  }

  void Send(size_t group) {
    std::vector<float> answer(center.size());
    ElasticExchange(alpha, groups[group], absl::MakeSpan(center), absl::MakeSpan(answer));
    answers_on_the_way[group].push_back(answer);
  }
  // The group applies its oldest answer.
  void Arrive(size_t group) {
    ApplyElasticAnswer(answers_on_the_way[group].front(), absl::MakeSpan(groups[group]));
    answers_on_the_way[group].pop_front();
  }
  // For value `i`: center + sum of groups - answers that have moved the center but not yet their group.
  double Total(size_t i) const {
    double total = center[i];
    for (const std::vector<float>& x : groups) total += x[i];
    for (const auto& answers : answers_on_the_way) {
      for (const std::vector<float>& answer : answers) total -= answer[i];
    }
    return total;
  }
};

// With zero gradients, exchanges of 1 to 8 groups in any order keep center + sum of groups. Answers may be applied at
// once or late. The tolerance is 1e-4, because values are floats around 1 and there are 400 half exchanges.
TEST(ElasticTest, ConservesCenterPlusGroupsInAnyInterleaving) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    const uint32_t count = 1 + seed % 8;
    const size_t values = 1 + random() % 37;
    Springs springs(random, count, values);
    std::vector<double> before(values);
    for (size_t i = 0; i < values; ++i) before[i] = springs.Total(i);
    for (int event = 0; event < 400; ++event) {
      const size_t group = random() % count;
      const bool arrive = !springs.answers_on_the_way[group].empty() && random() % 3 != 0;
      // At most two answers are on their way, so they stay in proportion to the group's position.
      if (arrive || springs.answers_on_the_way[group].size() == 2) {
        springs.Arrive(group);
      } else {
        springs.Send(group);
      }
      for (size_t i = 0; i < values; ++i) {
        ASSERT_NEAR(springs.Total(i), before[i], 1e-4) << "seed " << seed << " event " << event << " value " << i;
      }
    }
  }
}

// All groups exchange against the same center. Then each exchange multiplies the mean's offset from the center by 1 -
// alpha - beta, and each group's distance from the mean by 1 - alpha. beta is the number of groups times alpha.
TEST(ElasticTest, ContractsAsThePaperSays) {
  for (uint32_t count = 1; count <= 8; ++count) {
    std::mt19937_64 random(count);
    const size_t values = 9;
    Springs springs(random, count, values);
    const double alpha = springs.alpha;
    const double beta = count * alpha;
    const auto mean = [&](size_t i) {
      double sum = 0;
      for (const auto& x : springs.groups) sum += x[i];
      return sum / count;
    };
    for (int exchange = 0; exchange < 12; ++exchange) {
      std::vector<double> offset;
      std::vector<double> spread;
      for (size_t i = 0; i < values; ++i) {
        offset.push_back(mean(i) - springs.center[i]);
        spread.push_back(springs.groups[0][i] - mean(i));
      }
      const std::vector<float> same_center = springs.center;
      std::vector<float> next_center = same_center;
      for (uint32_t g = 0; g < count; ++g) {
        springs.center = same_center;
        springs.Send(g);
        for (size_t i = 0; i < values; ++i) next_center[i] += springs.answers_on_the_way[g].front()[i];
        springs.Arrive(g);
      }
      springs.center = next_center;
      for (size_t i = 0; i < values; ++i) {
        EXPECT_NEAR(mean(i) - springs.center[i], (1 - alpha - beta) * offset[i], 2e-6) << count << " groups";
        EXPECT_NEAR(springs.groups[0][i] - mean(i), (1 - alpha) * spread[i], 2e-6) << count << " groups";
      }
    }
  }
}

// Both halves of an exchange follow the formulas in double, value by value, at sizes around the vector width.
TEST(ElasticTest, HalvesAreTheFormulas) {
  for (size_t values : {0, 1, 3, 4, 5, 15, 16, 17, 1001}) {
    std::mt19937_64 random(values);
    const std::vector<float> x = RandomVector(random, values);
    const std::vector<float> center = RandomVector(random, values);
    std::vector<float> new_center = center;
    std::vector<float> answer(values);
    std::vector<float> new_x = x;
    ElasticExchange(0.3, x, absl::MakeSpan(new_center), absl::MakeSpan(answer));
    ApplyElasticAnswer(answer, absl::MakeSpan(new_x));
    for (size_t i = 0; i < values; ++i) {
      const double d = 0.3 * (static_cast<double>(x[i]) - center[i]);
      EXPECT_NEAR(answer[i], d, 1e-6);
      EXPECT_NEAR(new_center[i], center[i] + d, 1e-6);
      EXPECT_NEAR(new_x[i], x[i] - d, 1e-6);
    }
  }
}

// A late answer moves the group by the same difference, however far its own steps have taken it.
TEST(ElasticTest, LateAnswerKeepsTheStepsBetween) {
  std::vector<float> x = {1.0f, -2.0f};
  std::vector<float> center = {0.0f, 0.0f};
  std::vector<float> answer(2);
  ElasticExchange(0.25, x, absl::MakeSpan(center), absl::MakeSpan(answer));
  x[0] += 10.0f;  // Steps of the group while the answer is on its way.
  x[1] -= 4.0f;
  ApplyElasticAnswer(answer, absl::MakeSpan(x));
  EXPECT_EQ(x, (std::vector<float>{10.75f, -5.5f}));
  EXPECT_EQ(center, (std::vector<float>{0.25f, -0.5f}));
}

// If a group is equal to the center, an exchange moves neither.
TEST(ElasticTest, NothingMovesAtRest) {
  std::vector<float> x = {0.1f, -3.0f, 1e30f};
  std::vector<float> center = x;
  std::vector<float> answer(3, 1.0f);
  ElasticExchange(0.5, x, absl::MakeSpan(center), absl::MakeSpan(answer));
  EXPECT_EQ(center, x);
  EXPECT_EQ(answer, std::vector<float>(3, 0.0f));
}

// The default alpha is 1/(p+1) for up to nine groups and 0.9/p beyond. alpha + p * alpha never exceeds 1, so no
// exchange overshoots.
TEST(DefaultElasticAlphaTest, Table) {
  struct Row {
    uint32_t groups;
    double alpha;
  };
  for (const Row& row : {Row{1, 1.0 / 2}, Row{2, 1.0 / 3}, Row{3, 1.0 / 4}, Row{4, 1.0 / 5}, Row{8, 1.0 / 9},
                         Row{9, 0.1}, Row{10, 0.09}, Row{16, 0.05625}, Row{1024, 0.9 / 1024}}) {
    EXPECT_DOUBLE_EQ(DefaultElasticAlpha(row.groups), row.alpha) << row.groups;
  }
  for (uint32_t p = 1; p <= 1024; ++p) EXPECT_LE(DefaultElasticAlpha(p) * (p + 1), 1 + 1e-12) << p;
}

}  // namespace
}  // namespace hooke
