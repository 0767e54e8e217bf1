#include "job/done_share.h"

#include <gtest/gtest.h>

#include <vector>

namespace hooke {
namespace {

TEST(DoneShareTest, IsTheMeanOfTheGroups) {
  v1::RankProgress half, beyond, unknown;
  half.set_step(5);
  half.set_steps_total(10);
  beyond.set_step(11);
  beyond.set_steps_total(10);
  const std::vector<GroupDone> groups = {
      {v1::GROUP_STATE_RUNNING, 1, &half},    {v1::GROUP_STATE_RUNNING, 1, &beyond},
      {v1::GROUP_STATE_RUNNING, 1, &unknown}, {v1::GROUP_STATE_FINISHED, 2, nullptr},
      {v1::GROUP_STATE_WAITING, 0, nullptr},
  };
  EXPECT_DOUBLE_EQ(*DoneShare(groups, 5), 0.5);
  EXPECT_EQ(*DoneShare({}, 0), 0);
}

// A group that runs and of which nothing is known may be anywhere. One that waits counts as 0 until it has reported.
TEST(DoneShareTest, IsNotKnownUntilAStartedGroupReports) {
  EXPECT_FALSE(DoneShare({{v1::GROUP_STATE_RUNNING, 1, nullptr}}, 1).has_value());
  EXPECT_EQ(*DoneShare({{v1::GROUP_STATE_WAITING, 2, nullptr}}, 1), 0);
}

}  // namespace
}  // namespace hooke
