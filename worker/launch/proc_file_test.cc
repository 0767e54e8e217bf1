#include "worker/launch/proc_file.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

// Starts a child that waits to be killed.
pid_t StartChild() {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  return child;
}

void KillAndReap(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// A file of a living process is read whole.
TEST(ProcFileTest, ReadsALivingProcess) {
  EXPECT_THAT(ReadProcFile(getpid(), "stat"), Optional(StartsWith(std::to_string(getpid()) + " (")));
  EXPECT_THAT(ReadProcFile(getpid(), "cmdline"), Optional(HasSubstr("proc_file_test")));
}

// The result is nullopt for a process that was reaped, a file that does not exist, and one that cannot be read.
TEST(ProcFileTest, NothingWhereNothingIs) {
  const pid_t child = StartChild();
  KillAndReap(child);
  EXPECT_EQ(ReadProcFile(child, "stat"), std::nullopt);
  EXPECT_EQ(ReadProcFile(getpid(), "no-such-file"), std::nullopt);
  EXPECT_EQ(ReadProcFile(getpid(), "fd"), std::nullopt);
}

// While a process dies, each read gives the whole file or nullopt; nothing is thrown.
TEST(ProcFileTest, DiesMeanwhile) {
  for (int i = 0; i < 100; ++i) {
    const pid_t child = StartChild();
    ASSERT_GT(child, 0);
    std::thread killer([child] { KillAndReap(child); });
    while (const std::optional<std::string> stat = ReadProcFile(child, "stat")) {
      EXPECT_THAT(*stat, StartsWith(std::to_string(child) + " ("));
    }
    killer.join();
  }
}

}  // namespace
}  // namespace hooke
