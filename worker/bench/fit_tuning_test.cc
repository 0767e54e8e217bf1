#include "worker/bench/fit_tuning.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hooke {
namespace {

constexpr double kMargin = 0.05;
constexpr uint64_t kKi = 1024;

// For an all-reduce of private values by 2 ranks of one node the default is kStaged, in chunks of 256 KiB, at every
// size.
const Choice kDefault = {Algorithm::kStaged, 256 * kKi, 0, ""};
const Choice kRing = {Algorithm::kRing, 256 * kKi, 0, ""};
const Choice kSlices = {Algorithm::kStagedSlices, 256 * kKi, 0, ""};

struct Time {
  uint64_t bytes;
  Choice choice;
  double median_us;
};

std::vector<Measurement> Measured(const std::vector<Time>& times) {
  std::vector<Measurement> measurements;
  measurements.reserve(times.size());
  for (const Time& time : times) {
    measurements.push_back({Operation::kAllReduce, false, time.bytes, time.choice, time.median_us, time.median_us, 7});
  }
  return measurements;
}

struct Expected {
  Algorithm algorithm;
  uint64_t bytes_max;
};

struct Case {
  const char* name;
  std::vector<Time> times;
  std::vector<Expected> rules;
};

const Case kCases[] = {
    {"nothing measured", {}, {}},
    {"the default is fastest", {{4, kDefault, 10}, {4, kRing, 20}}, {}},
    {"faster, but within the margin", {{4, kDefault, 10.4}, {4, kRing, 10}}, {}},
    {"faster by more", {{4, kDefault, 10.6}, {4, kRing, 10}}, {{Algorithm::kRing, 4}}},
    {"no time of the default", {{4, kRing, 10}}, {}},
    {"one rule for neighbours",
     {{4, kDefault, 20}, {4, kRing, 10}, {64, kDefault, 20}, {64, kRing, 10}},
     {{Algorithm::kRing, 64}}},
    {"the middle divides two ways",
     {{kKi, kDefault, 20}, {kKi, kRing, 10}, {4 * kKi, kDefault, 20}, {4 * kKi, kSlices, 10}, {4 * kKi, kRing, 30}},
     {{Algorithm::kRing, 2 * kKi}, {Algorithm::kStagedSlices, 4 * kKi}}},
    {"a way is kept while nothing is faster by the margin",
     {{kKi, kDefault, 20}, {kKi, kRing, 10}, {4 * kKi, kDefault, 20}, {4 * kKi, kSlices, 10}, {4 * kKi, kRing, 10.4}},
     {{Algorithm::kRing, 4 * kKi}}},
    {"small sizes stay with the default where larger ones do not",
     {{kKi, kDefault, 10}, {kKi, kRing, 20}, {4 * kKi, kDefault, 20}, {4 * kKi, kRing, 10}},
     {{Algorithm::kStaged, 2 * kKi}, {Algorithm::kRing, 4 * kKi}}},
    {"large sizes stay with the default without a rule",
     {{kKi, kDefault, 20}, {kKi, kRing, 10}, {4 * kKi, kDefault, 10}, {4 * kKi, kRing, 20}},
     {{Algorithm::kRing, 2 * kKi}}},
    {"what comes after a gap in the default's times is left alone",
     {{4, kDefault, 20}, {4, kRing, 10}, {64, kRing, 10}, {256, kDefault, 20}, {256, kRing, 10}},
     {{Algorithm::kRing, 4}}},
};

// If a choice is fastest by more than the margin, it gets a rule for those sizes. Other sizes stay with the default.
TEST(FitTuningTest, Table) {
  for (const Case& c : kCases) {
    const Tuning tuning = FitTuning(OneNode(2), Measured(c.times), kMargin);
    ASSERT_EQ(tuning.rules.size(), c.rules.size()) << c.name << "\n" << FormatTuning(tuning);
    for (size_t i = 0; i < c.rules.size(); ++i) {
      EXPECT_EQ(tuning.rules[i].algorithm, c.rules[i].algorithm) << c.name << " " << i;
      EXPECT_EQ(tuning.rules[i].bytes_max, c.rules[i].bytes_max) << c.name << " " << i;
    }
  }
}

// If the default's lower quartile is as good as another choice's median, the default's longer times were only
// disturbed, and there is no rule.
TEST(FitTuningTest, NoiseWritesNoRules) {
  std::vector<Measurement> times = Measured({{4, kDefault, 20}, {4, kRing, 10}});
  times[0].quarter_us = 10.2;
  EXPECT_TRUE(FitTuning(OneNode(2), times, kMargin).rules.empty());
  times[0].quarter_us = 12;
  EXPECT_EQ(FitTuning(OneNode(2), times, kMargin).rules.size(), 1u);
}

// A rule holds only for groups and sizes like those measured, and a job reads it back unchanged.
TEST(FitTuningTest, RulesReachNoFurtherThanTheMeasurement) {
  Topology topology = OneNode(2);
  topology.oversubscribed = true;
  const Tuning tuning = FitTuning(topology, Measured({{4, kDefault, 20}, {4, kRing, 10}}), kMargin);
  const absl::StatusOr<Tuning> parsed = ParseTuning(FormatTuning(tuning));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->rules, tuning.rules);
  const auto choose = [&parsed](const Topology& where, const Workload& what) {
    return ChooseAlgorithm(where, what, *parsed).algorithm;
  };
  EXPECT_EQ(choose(topology, {Operation::kAllReduce, 4, false}), Algorithm::kRing);
  EXPECT_NE(choose(topology, {Operation::kAllReduce, 5, false}), Algorithm::kRing);
  EXPECT_NE(choose(topology, {Operation::kAllReduce, 4, true}), Algorithm::kRing);
  EXPECT_NE(choose(topology, {Operation::kReduceScatter, 4, false}), Algorithm::kRing);
  EXPECT_NE(choose(OneNode(2), {Operation::kAllReduce, 4, false}), Algorithm::kRing);
  topology.ranks = topology.smallest_node = topology.largest_node = 3;
  EXPECT_NE(choose(topology, {Operation::kAllReduce, 4, false}), Algorithm::kRing);
}

}  // namespace
}  // namespace hooke
