#include "server/scheduling/avoidance.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hooke {
namespace {

struct Case {
  const char* name;
  std::vector<Death> deaths;
  absl::Duration now;
  std::string reason;  // "": the worker is not avoided.
};

Death At(int seconds, const char* job, uint32_t group = 0) { return {job, group, absl::Seconds(seconds), "killed"}; }

const Case kCases[] = {
    {"no death", {}, absl::Seconds(1), ""},
    {"too few", {At(1, "a-1"), At(2, "b-1")}, absl::Seconds(3), ""},
    {"groups of different jobs",
     {At(1, "a-1"), At(2, "b-1"), At(125, "b-1", 1)},
     absl::Seconds(126),
     "groups died there 3 times within 2m4s, the last one group 1 of b-1: killed"},
    {"one group again and again",
     {At(1, "a-1"), At(2, "a-1"), At(3, "a-1")},
     absl::Seconds(3),
     "groups died there 3 times within 2s, the last one group 0 of a-1: killed"},
    {"each group of one job", {At(1, "a-1", 0), At(1, "a-1", 1), At(1, "a-1", 2)}, absl::Seconds(3), ""},
    {"too far apart", {At(1, "a-1"), At(400, "b-1"), At(700, "a-1")}, absl::Seconds(700), ""},
    {"until ten minutes after the last",
     {At(1, "a-1"), At(2, "b-1"), At(3, "a-1")},
     absl::Seconds(602),
     "groups died there 3 times within 2s, the last one group 0 of a-1: killed"},
    {"no longer", {At(1, "a-1"), At(2, "b-1"), At(3, "a-1")}, absl::Seconds(603), ""},
};

// A worker is avoided after several deaths in a short time, unless one job alone is to blame.
TEST(AvoidanceTest, AvoidsAWorkerOnWhichGroupsDie) {
  for (const Case& c : kCases) {
    std::deque<Death> deaths;
    for (const Death& death : c.deaths) AddDeath(deaths, death, {});
    const std::optional<Avoidance> avoidance = Avoid(deaths, c.now, {});
    EXPECT_EQ(avoidance.has_value() ? avoidance->reason : "", c.reason) << c.name;
    if (avoidance.has_value()) {
      EXPECT_EQ(avoidance->until, deaths.back().at + absl::Minutes(10)) << c.name;
    }
  }
}

// However often groups die, few deaths are kept.
TEST(AvoidanceTest, KeepsFewDeaths) {
  std::deque<Death> deaths;
  for (int i = 0; i < 1000; ++i) AddDeath(deaths, At(1, "a-1"), {});
  EXPECT_EQ(deaths.size(), 32u);
  AddDeath(deaths, At(1000, "a-1"), {});
  EXPECT_EQ(deaths.size(), 1u);
}

}  // namespace
}  // namespace hooke
