#include "mpi_group/node/peer_processes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hooke {
namespace {

// A process that sleeps until it is killed.
class Child {
 public:
  Child() : process_(fork()) {
    if (process_ != 0) return;
    while (true) pause();
  }
  ~Child() {
    if (process_ == 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  // Kills the process and waits until it is dead, without reaping it.
  void KillAndAwait() {
    kill(process_, SIGKILL);
    siginfo_t info;
    EXPECT_EQ(waitid(P_PID, process_, &info, WEXITED | WNOWAIT), 0);
  }

  ProcessIdentity identity() const {
    ProcessIdentity identity = OwnProcess();
    identity.number = process_;
    return identity;
  }

 private:
  const pid_t process_;
};

bool KernelHasPidfds() {
  const long watched = syscall(SYS_pidfd_open, getpid(), 0);
  if (watched >= 0) close(static_cast<int>(watched));
  return watched >= 0;
}

// HasEnded() is true as soon as the process has ended, also before somebody has reaped it, and not for other processes.
TEST(PeerProcessesTest, SeesWhichProcessHasEnded) {
  if (!KernelHasPidfds()) GTEST_SKIP() << "this kernel, or this container, has no pidfd_open";
  Child first, second;
  PeerProcesses peers;
  peers.Add(OwnProcess());
  peers.Add(first.identity());
  peers.Add(second.identity());
  for (int rank : {0, 1, 2}) EXPECT_FALSE(peers.HasEnded(rank)) << rank;
  second.KillAndAwait();
  EXPECT_FALSE(peers.HasEnded(0));
  EXPECT_FALSE(peers.HasEnded(1));
  EXPECT_TRUE(peers.HasEnded(2));
}

// A process of another PID namespace is not watched. Here its PID could belong to another process, whose end would mean
// nothing.
TEST(PeerProcessesTest, DoesNotWatchWhatItCannotName) {
  Child child;
  ProcessIdentity elsewhere = child.identity();
  ++elsewhere.namespace_inode;
  ProcessIdentity unknown = child.identity();
  unknown.number = 0;
  ProcessIdentity nobody = child.identity();
  nobody.number = int64_t{1} << 30;  // More than any PID that a kernel gives.
  PeerProcesses peers;
  peers.Add(elsewhere);
  peers.Add(unknown);
  peers.Add(nobody);
  child.KillAndAwait();
  for (int rank : {0, 1, 2}) EXPECT_FALSE(peers.HasEnded(rank)) << rank;
}

}  // namespace
}  // namespace hooke
