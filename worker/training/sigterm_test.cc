#include "worker/training/sigterm.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "gtest/gtest.h"

namespace hooke {
namespace {

// Returns how a child ended that has run `body`; 0 if it exited with status 0.
int EndOf(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    body();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

int SignalOf(int status) { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }

TEST(SigtermTest, DoesNothingToARank) {
  EXPECT_EQ(SignalOf(EndOf([] { raise(SIGTERM); })), SIGTERM);
  EXPECT_EQ(EndOf([] {
              LeaveSigtermToWorker();
              raise(SIGTERM);
              LeaveSigtermToWorker();
              raise(SIGTERM);
            }),
            0);
}

// MPICH's launcher hands on that the signal is blocked.
TEST(SigtermTest, DoesNothingIfItWasBlocked) {
  EXPECT_EQ(EndOf([] {
              sigset_t term;
              sigemptyset(&term);
              sigaddset(&term, SIGTERM);
              sigprocmask(SIG_BLOCK, &term, nullptr);
              raise(SIGTERM);
              LeaveSigtermToWorker();
              sigset_t blocked;
              sigprocmask(SIG_BLOCK, nullptr, &blocked);
              if (sigismember(&blocked, SIGTERM) != 0) _exit(1);
            }),
            0);
}

TEST(SigtermTest, StillEndsChildren) {
  EXPECT_EQ(EndOf([] {
              LeaveSigtermToWorker();
              if (SignalOf(EndOf([] { raise(SIGTERM); })) != SIGTERM) _exit(1);
              const int started = EndOf([] { execl("/bin/sh", "sh", "-c", "kill -TERM $$; exit 0", nullptr); });
              if (SignalOf(started) != SIGTERM) _exit(2);
            }),
            0);
}

TEST(SigtermTest, AHandlerOfTheProgramStays) {
  EXPECT_EQ(EndOf([] {
              signal(SIGTERM, [](int) { _exit(0); });
              LeaveSigtermToWorker();
              raise(SIGTERM);
              _exit(1);
            }),
            0);
}

}  // namespace
}  // namespace hooke
