#include "worker/launch/exit_order.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns a child that does nothing until it is killed.
pid_t Child() {
  const pid_t pid = fork();
  if (pid == 0) {
    while (true) pause();
  }
  return pid;
}

void KillAndReap(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// Sixteen processes are killed in random orders; ExitOrder tells the order.
TEST(ExitOrderTest, TellsTheOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<pid_t> pids;
    ExitOrder order;
    std::vector<uint32_t> killed;
    for (uint32_t rank = 0; rank < 16; ++rank) {
      pids.push_back(Child());
      ASSERT_GT(pids.back(), 0);
      order.Add(rank, pids.back());
      killed.push_back(rank);
    }
    std::shuffle(killed.begin(), killed.end(), random);
    for (uint32_t rank : killed) KillAndReap(pids[rank]);
    EXPECT_EQ(order.Exited(), killed);
  }
}

// Processes that live are not named, and one that was gone before it was to be watched is left out.
TEST(ExitOrderTest, NamesOnlyTheExited) {
  ExitOrder order;
  EXPECT_THAT(order.Exited(), IsEmpty());
  const pid_t gone = Child();
  KillAndReap(gone);
  const pid_t lives = Child();
  const pid_t killed = Child();
  order.Add(5, gone);
  order.Add(6, lives);
  order.Add(7, killed);
  KillAndReap(killed);
  EXPECT_THAT(order.Exited(), ElementsAre(7));
  KillAndReap(lives);
}

}  // namespace
}  // namespace hooke
