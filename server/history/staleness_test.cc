// Shows that staleness follows from the numbers of exchanges that groups report.

#include "server/history/staleness.h"

#include <gtest/gtest.h>

#include <vector>

namespace hooke {
namespace {

// Groups that exchange at steady rates report twice a second, one after another, for 30 s. Returns the last results.
std::vector<std::optional<double>> Train(const std::vector<double>& per_second, Staleness& staleness) {
  std::vector<std::optional<double>> last(per_second.size());
  for (int half = 0; half <= 60; ++half) {
    for (uint32_t group = 0; group < per_second.size(); ++group) {
      const absl::Duration now = absl::Seconds(0.5 * half + 0.01 * group);
      const auto exchanges = static_cast<uint64_t>(per_second[group] * 0.5 * half);
      last[group] = staleness.Report({group, 1, exchanges}, now);
    }
  }
  return last;
}

TEST(StalenessTest, IsWhatOthersDoBetweenTwoExchanges) {
  Staleness staleness;
  const auto last = Train({40, 10, 0.5}, staleness);
  EXPECT_NEAR(last[0].value_or(-1), 10.5 / 40, 0.03);
  EXPECT_NEAR(last[1].value_or(-1), 40.5 / 10, 0.4);
  // An exchange every two seconds is at most one off in five to ten seconds.
  EXPECT_NEAR(last[2].value_or(-1), 50 / 0.5, 35);
}

TEST(StalenessTest, AGroupAloneIsNeverStale) {
  Staleness staleness;
  EXPECT_EQ(Train({7}, staleness)[0], 0);
}

TEST(StalenessTest, IsNotKnownBeforeTheFirstExchanges) {
  Staleness staleness;
  EXPECT_FALSE(staleness.Report({0, 1, 5000}, absl::Seconds(0)).has_value());
  EXPECT_FALSE(staleness.Report({0, 1, 5000}, absl::Seconds(3)).has_value());
  EXPECT_FALSE(staleness.Report({1, 1, 70}, absl::Seconds(3)).has_value());
  EXPECT_FALSE(staleness.Report({1, 1, 75}, absl::Seconds(4)).has_value()) << "too soon";
  EXPECT_EQ(staleness.Report({1, 1, 80}, absl::Seconds(5)), 0)
      << "what was done before the first reports is not counted";
}

// A group that starts again counts from 0. That takes nothing back, and adds nothing.
TEST(StalenessTest, ANewStartCountsAnew) {
  Staleness staleness;
  staleness.Report({0, 1, 100}, absl::Seconds(0));
  staleness.Report({1, 1, 0}, absl::Seconds(0));
  staleness.Report({0, 1, 110}, absl::Seconds(3));
  EXPECT_EQ(staleness.Report({1, 1, 5}, absl::Seconds(3)), 2);
  staleness.Report({0, 2, 3}, absl::Seconds(3));
  EXPECT_EQ(staleness.Report({1, 1, 5}, absl::Seconds(3)), 2);
  staleness.Report({0, 2, 8}, absl::Seconds(4));
  EXPECT_EQ(staleness.Report({1, 1, 5}, absl::Seconds(4)), 3);
  EXPECT_EQ(staleness.Report({1, 1, 4}, absl::Seconds(4)), 3) << "a report that comes late takes nothing back";
}

// Exchanges of long ago do not count any more.
TEST(StalenessTest, FollowsAChangeOfPace) {
  Staleness staleness;
  Train({10, 10}, staleness);
  uint64_t first = 300, second = 300;
  std::optional<double> last;
  for (int second_of = 31; second_of < 60; ++second_of) {
    first += 100, second += 10;
    staleness.Report({0, 1, first}, absl::Seconds(second_of));
    last = staleness.Report({1, 1, second}, absl::Seconds(second_of));
  }
  EXPECT_NEAR(last.value_or(-1), 10, 0.5);
}

}  // namespace
}  // namespace hooke
