#include "server/parameters/attach.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

constexpr absl::Duration kLease = absl::Seconds(20);
const absl::Time kStart = absl::UnixEpoch();

AttachState Granted(uint32_t group, uint32_t incarnation) {
  return {false, InitializeRight{group, incarnation, kStart + kLease}};
}

// Tests every row of the state machine: who asks, in which state, when, and the answer.
TEST(DecideAttach, Table) {
  struct Case {
    AttachState state;
    Speaker speaker;
    absl::Duration after;
    AttachAnswer answer;
    std::string reason;
  };
  const AttachState ready = {true, InitializeRight{0, 1, kStart + kLease}};
  const Case cases[] = {
      {{}, {1, 0, 1}, absl::ZeroDuration(), AttachAnswer::kInitialize, "group 1 is the first to attach"},
      {Granted(0, 1),
       {1, 0, 1},
       absl::Seconds(5),
       AttachAnswer::kWait,
       "group 0 is initializing the center; its right ends in 15s"},
      {Granted(0, 1),
       {1, 0, 1},
       kLease,
       AttachAnswer::kInitialize,
       "group 0 did not initialize the center in time; group 1 does"},
      {Granted(0, 1),
       {0, 0, 1},
       absl::Seconds(5),
       AttachAnswer::kInitialize,
       "group 0 has the right to initialize already"},
      {Granted(0, 1),
       {0, 0, 2},
       absl::Seconds(5),
       AttachAnswer::kInitialize,
       "group 0 has the right to initialize already"},
      {Granted(0, 2),
       {0, 0, 1},
       absl::Seconds(5),
       AttachAnswer::kWait,
       "group 0 is initializing the center; its right ends in 15s"},
      {ready, {1, 0, 1}, absl::Seconds(5), AttachAnswer::kReady, "the center has values"},
      {ready, {0, 0, 1}, absl::Seconds(50), AttachAnswer::kReady, "the center has values"},
  };
  for (const Case& c : cases) {
    const AttachDecision decision = DecideAttach(kStart + c.after, c.state, c.speaker, kLease);
    EXPECT_EQ(decision.answer, c.answer) << decision.reason;
    EXPECT_EQ(decision.reason, c.reason);
  }
}

// The group that gets the right has it for a whole lease from then on. An answer to wait does not change the state.
TEST(DecideAttach, RightIsLeased) {
  const AttachState taken = DecideAttach(kStart + kLease, Granted(0, 1), {1, 0, 3}, kLease).next;
  ASSERT_TRUE(taken.right.has_value());
  EXPECT_EQ(taken.right->group, 1u);
  EXPECT_EQ(taken.right->incarnation, 3u);
  EXPECT_EQ(taken.right->until, kStart + 2 * kLease);

  const AttachState waiting = DecideAttach(kStart + absl::Seconds(1), Granted(0, 1), {1, 0, 1}, kLease).next;
  EXPECT_EQ(waiting.right->group, 0u);
  EXPECT_EQ(waiting.right->until, kStart + kLease);
}

}  // namespace
}  // namespace hooke
