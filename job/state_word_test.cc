#include "job/state_word.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

// A state has a word. The word for a state of a newer coordinator is "unknown".
TEST(StateWordTest, HasAWord) {
  EXPECT_EQ(JobStateText(v1::JOB_STATE_EVALUATING), "evaluating");
  EXPECT_EQ(JobStateText(static_cast<v1::JobState>(99)), "unknown");
}

}  // namespace
}  // namespace hooke
