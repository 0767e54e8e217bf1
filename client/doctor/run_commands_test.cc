// Tests commands that end, print, fail, hang, and ignore SIGTERM.
#include "client/doctor/run_commands.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace hooke {
namespace {

// All commands run side by side, and their outcomes come in order.
TEST(RunCommandsTest, Outcomes) {
  const std::vector<CommandOutcome> outcomes = RunCommands({{{"sh", "-c", "echo out; echo err >&2; echo $LC_ALL"}},
                                                            {{"no-such-program-of-hooke"}},
                                                            {{"sh", "-c", "exit 3"}},
                                                            {{"sh", "-c", "kill -9 $$"}}});
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_EQ(outcomes[0].output, "out\nerr\nC\n");
  EXPECT_TRUE(outcomes[1].missing());
  EXPECT_EQ(outcomes[2].exit_code, 3);
  EXPECT_EQ(outcomes[3].exit_code, 137);
}

// A command is stopped at its limit, also if it ignores SIGTERM. What it printed before is kept.
TEST(RunCommandsTest, Limit) {
  const absl::Time begun = absl::Now();
  const std::vector<CommandOutcome> outcomes =
      RunCommands({{{"sh", "-c", "echo first; exec sleep 100"}, absl::Milliseconds(300)},
                   {{"sh", "-c", "trap '' TERM; while :; do sleep 1; done"}, absl::Milliseconds(300)}});
  EXPECT_LT(absl::Now() - begun, absl::Seconds(30));
  for (const CommandOutcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.timed_out);
    EXPECT_FALSE(outcome.ok());
    EXPECT_GE(outcome.took, absl::Milliseconds(300));
  }
  EXPECT_EQ(outcomes[0].output, "first\n");
}

// More output than is kept does not stop the command.
TEST(RunCommandsTest, MuchOutput) {
  const CommandOutcome outcome = RunCommands({{{"head", "-c", "1000000", "/dev/zero"}, absl::Seconds(30)}})[0];
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.output.size(), size_t{256} << 10);
}

}  // namespace
}  // namespace hooke
