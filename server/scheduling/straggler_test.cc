#include "server/scheduling/straggler.h"

#include <optional>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

constexpr StragglerOptions kOptions;

// A measurement ends after half a minute and five steps, and the next one begins with it.
TEST(StepWorkTest, MeasuresInWindows) {
  StepWork work;
  EXPECT_FALSE(work.Note(absl::Seconds(0), 10, absl::Seconds(1), kOptions));
  EXPECT_FALSE(work.Note(absl::Seconds(29), 100, absl::Seconds(9), kOptions));
  EXPECT_EQ(work.of_a_step(), std::nullopt);
  EXPECT_TRUE(work.Note(absl::Seconds(30), 110, absl::Seconds(11), kOptions));
  EXPECT_EQ(work.of_a_step(), absl::Milliseconds(100));
  EXPECT_FALSE(work.Note(absl::Seconds(59), 120, absl::Seconds(13), kOptions));
  EXPECT_TRUE(work.Note(absl::Seconds(60), 120, absl::Seconds(13), kOptions));
  EXPECT_EQ(work.of_a_step(), absl::Milliseconds(200));
}

// A measurement lasts until five steps are made, because large models make few steps.
TEST(StepWorkTest, WaitsForSteps) {
  StepWork work;
  EXPECT_FALSE(work.Note(absl::Seconds(0), 1, absl::Seconds(20), kOptions));
  EXPECT_FALSE(work.Note(absl::Seconds(80), 5, absl::Seconds(100), kOptions));
  EXPECT_TRUE(work.Note(absl::Seconds(100), 6, absl::Seconds(120), kOptions));
  EXPECT_EQ(work.of_a_step(), absl::Seconds(20));
}

// Counts that go back are a program's fault. They begin a new measurement, and make no time negative.
TEST(StepWorkTest, CountsThatGoBackBeginAnew) {
  StepWork work;
  EXPECT_FALSE(work.Note(absl::Seconds(0), 100, absl::Seconds(10), kOptions));
  EXPECT_FALSE(work.Note(absl::Seconds(40), 50, absl::Seconds(12), kOptions));
  EXPECT_FALSE(work.Note(absl::Seconds(80), 60, absl::Seconds(11), kOptions));
  EXPECT_EQ(work.of_a_step(), std::nullopt);
}

TEST(StragglerTest, Median) {
  EXPECT_EQ(Median({absl::Seconds(3)}), absl::Seconds(3));
  EXPECT_EQ(Median({absl::Seconds(9), absl::Seconds(3)}), absl::Seconds(3));
  EXPECT_EQ(Median({absl::Seconds(9), absl::Seconds(1), absl::Seconds(3)}), absl::Seconds(3));
}

}  // namespace
}  // namespace hooke
