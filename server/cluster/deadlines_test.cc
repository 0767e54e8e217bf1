#include "server/cluster/deadlines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DeadlinesTest, TakesOnlyThoseThatAreDue) {
  Deadlines<std::string> deadlines;
  deadlines.Set("late", absl::Seconds(3));
  deadlines.Set("early", absl::Seconds(1));
  deadlines.Set("never", absl::Seconds(1));
  deadlines.Set("never", absl::InfiniteDuration());
  EXPECT_THAT(deadlines.TakeDue(absl::Milliseconds(999)), IsEmpty());
  EXPECT_THAT(deadlines.TakeDue(absl::Seconds(1)), ElementsAre("early"));
  EXPECT_THAT(deadlines.TakeDue(absl::Seconds(2)), IsEmpty());
  deadlines.Set("late", absl::Seconds(9));
  deadlines.Set("again", absl::Seconds(5));
  deadlines.Set("late", absl::Seconds(4));
  EXPECT_THAT(deadlines.TakeDue(absl::Seconds(9)), ElementsAre("late", "again"));
}

TEST(DeadlinesTest, EqualsATable) {
  std::mt19937 random(1);
  const auto pick = [&random](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  Deadlines<int> deadlines;
  std::map<int, absl::Duration> table;
  for (int second = 0; second < 2000; ++second) {
    for (int i = pick(5); i > 0; --i) {
      const int key = pick(30);
      const absl::Duration at = pick(6) == 0 ? absl::InfiniteDuration() : absl::Seconds(second + pick(40));
      deadlines.Set(key, at);
      table[key] = at;
    }
    for (const int key : deadlines.TakeDue(absl::Seconds(second))) {
      ASSERT_LE(table.at(key), absl::Seconds(second));
      table.erase(key);
    }
    for (const auto& [key, at] : table) ASSERT_GT(at, absl::Seconds(second)) << key;
  }
}

}  // namespace
}  // namespace hooke
