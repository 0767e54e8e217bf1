#include "algorithms/exchange_plan.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace hooke {
namespace {

// The plan after each step of a run, as text: "f" finishes, "b<fragment>/<fragments>" begins, "w" waits at once.
std::vector<std::string> Course(const ExchangeRhythm& rhythm) {
  std::vector<std::string> all;
  std::optional<uint64_t> in_flight;
  for (uint64_t step = 1; step <= rhythm.steps_total; ++step) {
    const ExchangePlan plan = PlanExchange(rhythm, {step, in_flight});
    std::string text;
    if (plan.finishes) {
      text += "f";
      in_flight.reset();
    }
    if (plan.begins) {
      EXPECT_FALSE(in_flight.has_value());
      text += "b" + std::to_string(plan.fragment.index) + "/" + std::to_string(plan.fragment.parts);
      if (plan.waits) {
        text += "w";
      } else {
        in_flight = step;
      }
    }
    all.push_back(text);
  }
  EXPECT_FALSE(in_flight.has_value()) << "at the end all is finished";
  return all;
}

using Steps = std::vector<std::string>;

// An exchange begins every interval. With a delay, the group finishes it `delay` steps later. The last exchange is of
// the whole vector, and the group waits for it.
TEST(ExchangePlanTest, BeginsAndSettles) {
  EXPECT_EQ(Course({.interval = 1, .steps_total = 3}), (Steps{"b0/1w", "b0/1w", "b0/1w"}));
  EXPECT_EQ(Course({.interval = 3, .steps_total = 7}), (Steps{"", "", "b0/1w", "", "", "b0/1w", "b0/1w"}));
  EXPECT_EQ(Course({.interval = 3, .delay = 1, .steps_total = 8}),
            (Steps{"", "", "b0/1", "f", "", "b0/1", "f", "b0/1w"}));
  EXPECT_EQ(Course({.interval = 3, .delay = 2, .steps_total = 9}),
            (Steps{"", "", "b0/1", "", "f", "b0/1", "", "f", "b0/1w"}));
}

// An exchange in flight is finished before the last exchange begins, even if its delay has not passed.
TEST(ExchangePlanTest, TheEndSettlesEarly) {
  EXPECT_EQ(Course({.interval = 4, .delay = 3, .steps_total = 5}), (Steps{"", "", "", "b0/1", "fb0/1w"}));
  EXPECT_EQ(Course({.interval = 4, .delay = 3, .steps_total = 4}), (Steps{"", "", "", "b0/1w"}));
}

// Fragments take turns: each is exchanged once in an interval. At the end the whole vector is exchanged.
TEST(ExchangePlanTest, FragmentsTakeTurns) {
  EXPECT_EQ(Course({.interval = 4, .fragments = 2, .steps_total = 9}),
            (Steps{"", "b0/2w", "", "b1/2w", "", "b0/2w", "", "b1/2w", "b0/1w"}));
  EXPECT_EQ(Course({.interval = 6, .delay = 1, .fragments = 3, .steps_total = 8}),
            (Steps{"", "b0/3", "f", "b1/3", "f", "b2/3", "f", "b0/1w"}));
  EXPECT_EQ(Course({.interval = 3, .fragments = 3, .steps_total = 4}), (Steps{"b0/3w", "b1/3w", "b2/3w", "b0/1w"}));
}

// Post-local SGD: the group first exchanges after each step, even with a delay, and then by the interval.
TEST(ExchangePlanTest, PostLocal) {
  EXPECT_EQ(Course({.interval = 3, .each_step_until = 2, .steps_total = 7}),
            (Steps{"b0/1w", "b0/1w", "b0/1w", "", "", "b0/1w", "b0/1w"}));
  EXPECT_EQ(Course({.interval = 3, .delay = 1, .each_step_until = 4, .steps_total = 8}),
            (Steps{"b0/1w", "b0/1w", "b0/1w", "b0/1w", "", "b0/1", "f", "b0/1w"}));
}

// A clock may ask for an exchange while an earlier one is in flight. The new one then begins in the step that applies
// the earlier answers.
TEST(ExchangePlanTest, DueByAClock) {
  const ExchangeRhythm rhythm = {.interval = 16, .delay = 2, .steps_total = 100};
  ExchangePlan plan = PlanExchange(rhythm, {3, std::nullopt, true});
  EXPECT_TRUE(plan.begins);
  EXPECT_FALSE(plan.waits);
  plan = PlanExchange(rhythm, {4, 3, true});
  EXPECT_FALSE(plan.begins || plan.finishes);
  plan = PlanExchange(rhythm, {5, 3, true});
  EXPECT_TRUE(plan.finishes && plan.begins);
  plan = PlanExchange(rhythm, {16, std::nullopt, false});
  EXPECT_FALSE(plan.begins) << "the clock alone decides";
}

// The servers may choose the fragment. The last exchange is still of the whole vector.
TEST(ExchangePlanTest, TurnsByTheServers) {
  const ExchangeRhythm rhythm = {.interval = 16, .fragments = 4, .steps_total = 100};
  EXPECT_EQ(PlanExchange(rhythm, {4, std::nullopt, std::nullopt, 2}).fragment.index, 2u);
  EXPECT_EQ(PlanExchange(rhythm, {4, std::nullopt}).fragment.index, 0u);
  EXPECT_EQ(PlanExchange(rhythm, {100, std::nullopt, std::nullopt, 2}).fragment.parts, 1u);
}

}  // namespace
}  // namespace hooke
