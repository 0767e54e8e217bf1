// Error feedback by its definition (Karimireddy et al., arXiv 1901.09847): each group has a memory of its moves that
// were not sent. New moves are added before values are chosen, and sent values are subtracted afterwards. Our rules
// keep no such memory: what was not sent stays in the sum of gradients or in the group's parameters. This test compares
// our rules, over many exchanges of several groups, with a slow reference that has a memory in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

using Values = std::vector<double>;

constexpr uint64_t kValues = 600;
constexpr uint32_t kGroups = 3;
constexpr int kExchanges = 60;
constexpr double kOff = 1e-4;  // The tolerance for float32.

struct Case {
  const char* name;
  RuleName rule;
  double rate;
  double momentum;
  bool nesterov;
};
constexpr Case kCases[] = {
    {"sync", RuleName::kSync, 0.1, 0.9, false},    {"average", RuleName::kAverage, 1, 0, false},
    {"bmuf", RuleName::kBmuf, 1, 0.6, true},       {"slowmo", RuleName::kSlowMo, 1, 0.7, false},
    {"diloco", RuleName::kDiLoCo, 0.7, 0.9, true},
};

// Says which disturbances a run has, between its exchanges and during them.
struct Course {
  const char* name;
  bool late = false;       // Groups go on training while an exchange is on its way.
  uint32_t fragments = 1;  // Parts of the vector that take turns.
  // Every fifth answer to group 0 is lost. In its place, the group's next exchange brings the center as it is then.
  bool loses = false;
  bool restarts = false;  // After every tenth exchange group 1 restarts from the center.
};
constexpr Course kCourses[] = {
    {.name = "plain"},
    {.name = "late answers", .late = true},
    {.name = "fragments", .fragments = 2},
    {.name = "late answers of fragments", .late = true, .fragments = 2},
    {.name = "lost answers", .loses = true},
    {.name = "late and lost answers", .late = true, .loses = true},
    {.name = "a group that is started again", .restarts = true},
};

Range TurnOf(const Course& course, int exchange) {
  const uint64_t part = static_cast<uint64_t>(exchange) % course.fragments;
  return {kValues * part / course.fragments, kValues * (part + 1) / course.fragments};
}
bool IsLost(const Course& course, uint32_t group, int exchange) {
  return course.loses && group == 0 && exchange % 5 == 4;
}
bool Restarts(const Course& course, uint32_t group, int exchange) {
  return course.restarts && group == 1 && exchange % 10 == 9;
}

// The moves of a group in one interval. Each group moves towards its own random target, with noise.
struct Ways {
  Ways() : random(7), target(kGroups, Values(kValues)) {
    for (Values& each : target) {
      for (double& value : each) value = normal(random);
    }
  }
  Values Noise() {
    Values noise(kValues);
    for (double& value : noise) value = 0.1 * normal(random);
    return noise;
  }
  double Towards(uint32_t group, uint64_t i, double x) const { return 0.2 * (x - target[group][i]); }

  std::mt19937_64 random;
  std::normal_distribution<double> normal;
  std::vector<Values> target;
};

const Encoding kTopK = {Compression::kTopK, TopKOf(0.02)};

// Expects that `sent` has as many values as top_k allows, each rounded to bfloat16, and that no larger one was left
// out.
void ExpectLargest(absl::Span<const double> memory, absl::Span<const float> sent) {
  size_t chosen = 0;
  double least_sent = 1e9;
  double most_left = 0;
  for (size_t i = 0; i < sent.size(); ++i) {
    const double size = std::abs(memory[i]);
    if (sent[i] == 0) {
      most_left = std::max(most_left, size);
      continue;
    }
    ++chosen;
    least_sent = std::min(least_sent, size);
    EXPECT_NEAR(sent[i], memory[i], size / 256 + kOff) << i;
  }
  EXPECT_EQ(chosen, (sent.size() * kTopK.top_k + kTopKRun - 1) / kTopKRun);
  EXPECT_LE(most_left, least_sent + kOff);
}

// Error feedback by its definition, in double precision.
class Reference {
 public:
  explicit Reference(const Case& c) : case_(c) {}

  const Values& center() const { return center_; }
  // Returns a group's own value. Under sync it is the last center's. Under other rules the group is ahead of its last
  // center by its unsent and unanswered moves.
  double x(uint32_t group, uint64_t i) const {
    const Group& at = groups_[group];
    return case_.rule == RuleName::kSync ? at.base[i] : at.base[i] - at.memory[i] - at.unanswered[i];
  }

  void Go(uint32_t group, const Values& way) {
    for (uint64_t i = 0; i < kValues; ++i) groups_[group].memory[i] += way[i];
  }

  // Each message must carry the largest values of its group's memory.
  void Exchange(const Range& turn, absl::Span<const Contribution> round) {
    Values mean(kValues);
    for (const Contribution& from : round) {
      Group& group = groups_[from.group];
      ExpectLargest(absl::MakeConstSpan(group.memory).subspan(turn.begin, turn.size()), from.values);
      for (uint64_t i = turn.begin; i < turn.end; ++i) {
        const double value = from.values[i - turn.begin];
        group.memory[i] -= value;
        group.unanswered[i] += value;
        mean[i] += value / kGroups;
      }
    }
    for (uint64_t i = turn.begin; i < turn.end; ++i) {
      velocity_[i] = case_.momentum * velocity_[i] + mean[i];
      center_[i] -= case_.rate * (case_.nesterov ? mean[i] + case_.momentum * velocity_[i] : velocity_[i]);
    }
  }

  void Answer(uint32_t group, const Range& turn) {
    for (uint64_t i = turn.begin; i < turn.end; ++i) {
      groups_[group].base[i] = center_[i];
      groups_[group].unanswered[i] = 0;
    }
  }

  void Restart(uint32_t group) { groups_[group] = {center_}; }

 private:
  struct Group {
    Values base = Values(kValues);        // The last center received.
    Values memory = Values(kValues);      // Moves made but not sent.
    Values unanswered = Values(kValues);  // Moves sent whose answer has not arrived.
  };
  const Case case_;
  Values center_ = Values(kValues);
  Values velocity_ = Values(kValues);
  std::vector<Group> groups_ = std::vector<Group>(kGroups);
};

// A group that uses our rules and exchanges its vector as a rank does.
class Member {
 public:
  explicit Member(RuleName rule) : rule_(MakeGroupRule(rule, {kValues, kValues, {0, kValues}})) { rule_->Begin(x_); }

  const std::vector<float>& x() const { return x_; }

  void Go(const Values& way) {
    const std::vector<float> gradient(way.begin(), way.end());
    if (rule_->StepsLocally()) {
      for (uint64_t i = 0; i < kValues; ++i) x_[i] -= gradient[i];
    }
    rule_->AddGradient(gradient);
  }

  // Returns the decoded message. If an answer was lost, `center` replaces it.
  absl::Span<const float> Send(const Range& turn, absl::Span<const float> center) {
    const absl::Span<const float> prepared = rule_->Prepare(x_, {&turn, 1});
    std::vector<float> copy(prepared.begin(), prepared.end());
    if (!lost_.empty()) {
      lost_center_.assign(center.begin(), center.end());
      rule_->CorrectCopy({0, lost_, lost_center_, true}, absl::MakeSpan(copy));
    }
    const absl::Span<const float> owed = absl::MakeConstSpan(copy).subspan(turn.begin, turn.size());
    std::string bytes(EncodedBytes(kTopK, owed.size()), '\0');
    EXPECT_TRUE(Encode(kTopK, owed, absl::MakeSpan(&bytes[0], bytes.size())).ok());
    sent_.resize(owed.size());
    EXPECT_TRUE(Decode(kTopK, bytes, absl::MakeSpan(sent_)).ok());
    return sent_;
  }

  void Lose() { lost_ = sent_; }

  void Answer(const Range& turn, absl::Span<const float> center) {
    if (!lost_.empty()) rule_->Take({0, lost_, lost_center_, true}, absl::MakeSpan(x_));
    lost_.clear();
    rule_->Take({turn.begin, sent_, center.subspan(turn.begin, turn.size())}, absl::MakeSpan(x_));
  }

  void Restart(RuleName rule, absl::Span<const float> center) {
    *this = Member(rule);
    x_.assign(center.begin(), center.end());
    rule_->Begin(x_);
  }

 private:
  std::unique_ptr<GroupRule> rule_;
  std::vector<float> x_ = std::vector<float>(kValues);
  std::vector<float> sent_;
  std::vector<float> lost_;  // Values sent whose answer was lost.
  std::vector<float> lost_center_;
};

// The servers' side of the exchanges, with our rules.
class Center {
 public:
  explicit Center(const Case& c) {
    CenterRuleOptions options;
    options.rule = c.rule;
    options.groups = kGroups;
    options.optimizer.momentum = c.momentum;
    options.optimizer.nesterov = c.nesterov;
    options.schedule.learning_rate = c.rate;
    rule_ = MakeCenterRule(options).value();
    state_.resize(kValues * rule_->traits().state_values);
  }

  const std::vector<float>& values() const { return values_; }

  void Round(const Range& turn, absl::Span<const Contribution> from) {
    CenterBlock block;
    block.values = absl::MakeSpan(values_).subspan(turn.begin, turn.size());
    // The tested rules keep at most one float of state per value.
    if (!state_.empty()) block.state = absl::MakeSpan(state_).subspan(turn.begin, turn.size());
    block.parameters = turn.size();
    std::vector<float> answer(turn.size());
    rule_->Apply(from, block, absl::MakeSpan(answer));
  }

 private:
  std::unique_ptr<CenterRule> rule_;
  std::vector<float> values_ = std::vector<float>(kValues);
  std::vector<float> state_;
};

// The largest difference between our rules and the definition.
double WorstOf(const Reference& reference, const Center& center, const std::vector<Member>& members) {
  double worst = 0;
  for (uint64_t i = 0; i < kValues; ++i) {
    worst = std::max(worst, std::abs(center.values()[i] - reference.center()[i]));
    for (uint32_t group = 0; group < kGroups; ++group) {
      worst = std::max(worst, std::abs(members[group].x()[i] - reference.x(group, i)));
    }
  }
  return worst;
}

void GoAll(Ways& ways, Reference& reference, std::vector<Member>& members) {
  for (uint32_t group = 0; group < kGroups; ++group) {
    Values way = ways.Noise();
    for (uint64_t i = 0; i < kValues; ++i) way[i] += ways.Towards(group, i, reference.x(group, i));
    reference.Go(group, way);
    members[group].Go(way);
  }
}

// A value that top_k leaves out is sent later exactly once, although the rules keep no memory of it. This holds for
// every rule in rounds, with or without momentum, with late and lost answers, fragments, and a group that restarts.
TEST(ErrorFeedbackReference, EveryRuleKeepsTheMemoryOfTheDefinition) {
  for (const Case& c : kCases) {
    for (const Course& course : kCourses) {
      SCOPED_TRACE(std::string(c.name) + ", " + course.name);
      Ways ways;
      Reference reference(c);
      Center center(c);
      std::vector<Member> members;
      for (uint32_t group = 0; group < kGroups; ++group) members.emplace_back(c.rule);
      double gone = 0;
      for (int exchange = 0; exchange < kExchanges; ++exchange) {
        const Range turn = TurnOf(course, exchange);
        GoAll(ways, reference, members);
        std::vector<Contribution> round;
        for (uint32_t group = 0; group < kGroups; ++group) {
          round.push_back(
              {group, static_cast<uint64_t>(exchange) + 1, 1, 0, members[group].Send(turn, center.values())});
        }
        center.Round(turn, round);
        reference.Exchange(turn, round);
        if (course.late) GoAll(ways, reference, members);
        for (uint32_t group = 0; group < kGroups; ++group) {
          if (IsLost(course, group, exchange)) {
            members[group].Lose();
            continue;
          }
          members[group].Answer(turn, center.values());
          reference.Answer(group, turn);
          if (!Restarts(course, group, exchange)) continue;
          members[group].Restart(c.rule, center.values());
          reference.Restart(group);
        }
        ASSERT_LT(WorstOf(reference, center, members), kOff) << "exchange " << exchange;
      }
      for (const float value : center.values()) gone = std::max(gone, std::abs(double{value}));
      EXPECT_GT(gone, 0.5) << "the center has moved";
    }
  }
}

}  // namespace
}  // namespace hooke
