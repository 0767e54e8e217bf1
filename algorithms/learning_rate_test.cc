#include "algorithms/learning_rate.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

LearningRateOptions Constant() {
  LearningRateOptions options;
  options.learning_rate = 0.5;
  options.total_epochs = 10;
  return options;
}

LearningRateOptions Step() {
  LearningRateOptions options = Constant();
  options.name = LearningRateName::kStep;
  options.step_epochs = 3;
  options.step_factor = 0.1;
  return options;
}

LearningRateOptions Cosine() {
  LearningRateOptions options = Constant();
  options.name = LearningRateName::kCosine;
  options.final_fraction = 0.2;
  return options;
}

LearningRateOptions WarmedUp(LearningRateOptions options) {
  options.warmup_epochs = 2;
  return options;
}

// Compares the rate of each schedule with a table: at its start, during and at the end of warm-up, at boundaries, at
// the end and beyond.
TEST(LearningRateTest, Table) {
  struct Row {
    const char* what;
    LearningRateOptions options;
    double epoch;
    double want;
  };
  const Row rows[] = {
      {"constant, start", Constant(), 0, 0.5},
      {"constant, end", Constant(), 10, 0.5},
      {"constant, beyond", Constant(), 99, 0.5},
      {"warm-up, start", WarmedUp(Constant()), 0, 0},
      {"warm-up, quarter", WarmedUp(Constant()), 0.5, 0.125},
      {"warm-up, just before its end", WarmedUp(Constant()), 1.99, 0.4975},
      {"warm-up, end", WarmedUp(Constant()), 2, 0.5},
      {"step, start", Step(), 0, 0.5},
      {"step, before the first drop", Step(), 2.99, 0.5},
      {"step, first drop", Step(), 3, 0.05},
      {"step, a quotient a rounding error below the border", Step(), std::nextafter(3.0, 0.0), 0.05},
      {"step, second drop", Step(), 6.5, 0.005},
      {"step, end", Step(), 10, 0.0005},
      {"step, beyond", Step(), 100, 0.0005},
      {"step, warm-up", WarmedUp(Step()), 1, 0.25},
      {"step, drops count from 0, not from the end of warm-up", WarmedUp(Step()), 3, 0.05},
      {"cosine, start", Cosine(), 0, 0.5},
      {"cosine, half", Cosine(), 5, 0.5 * 0.6},
      {"cosine, third of the angle", Cosine(), 10.0 / 3, 0.5 * (0.2 + 0.8 * 0.75)},
      {"cosine, end", Cosine(), 10, 0.1},
      {"cosine, beyond", Cosine(), 11, 0.1},
      {"cosine, warm-up", WarmedUp(Cosine()), 1, 0.25},
      {"cosine, peak after warm-up", WarmedUp(Cosine()), 2, 0.5},
      {"cosine, half of what follows warm-up", WarmedUp(Cosine()), 6, 0.5 * 0.6},
  };
  for (const Row& row : rows) {
    ASSERT_TRUE(CheckLearningRate(row.options).ok()) << row.what;
    EXPECT_NEAR(LearningRate(row.options, row.epoch), row.want, 1e-12) << row.what;
  }
}

// No schedule rises after warm-up, passes the peak, or leaves [0, peak].
TEST(LearningRateTest, NeverRisesAfterWarmup) {
  for (const LearningRateOptions& options : {Constant(), Step(), Cosine(), WarmedUp(Step()), WarmedUp(Cosine())}) {
    double last = options.learning_rate;
    for (int i = 0; i < 1000; ++i) {
      const double rate = LearningRate(options, options.warmup_epochs + i * 0.012);
      EXPECT_LE(rate, last + 1e-15);
      EXPECT_GT(rate, 0);
      last = rate;
    }
  }
}

// The refusal of an option out of range gives its name, its value and the allowed values.
TEST(CheckLearningRateTest, RefusesOptionsOutOfRange) {
  struct Row {
    LearningRateOptions base;
    double LearningRateOptions::*option;
    double value;
    std::string message;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  using O = LearningRateOptions;
  const Row rows[] = {
      {Constant(), &O::learning_rate, 0, "schedule: learning_rate is 0; allowed is learning_rate > 0"},
      {Constant(), &O::learning_rate, -0.1, "schedule: learning_rate is -0.1; allowed is learning_rate > 0"},
      {Constant(), &O::learning_rate, nan, "schedule: learning_rate is nan; allowed is learning_rate > 0"},
      {Constant(), &O::learning_rate, inf, "schedule: learning_rate is inf; allowed is learning_rate > 0"},
      {Constant(), &O::total_epochs, 0, "schedule: total_epochs is 0; allowed is total_epochs > 0"},
      {Constant(), &O::warmup_epochs, -1,
       "schedule: warmup_epochs is -1; allowed is 0 <= warmup_epochs < total_epochs, which is 10"},
      {Constant(), &O::warmup_epochs, 10,
       "schedule: warmup_epochs is 10; allowed is 0 <= warmup_epochs < total_epochs, which is 10"},
      {Step(), &O::step_epochs, 0, "schedule: step_epochs is 0; allowed is step_epochs > 0"},
      {Step(), &O::step_factor, 0, "schedule: step_factor is 0; allowed is 0 < step_factor <= 1"},
      {Step(), &O::step_factor, 1.5, "schedule: step_factor is 1.5; allowed is 0 < step_factor <= 1"},
      {Cosine(), &O::final_fraction, -0.1, "schedule: final_fraction is -0.1; allowed is 0 <= final_fraction <= 1"},
      {Cosine(), &O::final_fraction, 1.1, "schedule: final_fraction is 1.1; allowed is 0 <= final_fraction <= 1"},
  };
  for (const Row& row : rows) {
    LearningRateOptions options = row.base;
    options.*row.option = row.value;
    const absl::Status status = CheckLearningRate(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.message;
    EXPECT_EQ(std::string(status.message()), row.message);
  }
}

// An unknown schedule name, as from a newer program, is refused. Options of schedules other than the chosen one are
// ignored.
TEST(CheckLearningRateTest, LooksAtTheChosenScheduleOnly) {
  LearningRateOptions options = Constant();
  options.step_factor = 7;
  options.final_fraction = -1;
  EXPECT_TRUE(CheckLearningRate(options).ok());
  options.name = static_cast<LearningRateName>(9);
  EXPECT_EQ(CheckLearningRate(options).message(),
            "schedule: name number 9 is not known; allowed are constant, step and cosine");
}

}  // namespace
}  // namespace hooke
