#include "worker/training/sigterm.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace hooke {
namespace {

std::atomic<pid_t> rank_process;  // The process that SIGTERM does nothing to.

// A forked child has this handler, too. There it does what SIGTERM does without a handler: once the handler returns,
// the repeated signal ends the child.
void OnSigterm(int) {
  if (getpid() == rank_process) return;
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
}

}  // namespace

void LeaveSigtermToWorker() {
  struct sigaction now = {};
  sigaction(SIGTERM, nullptr, &now);
  if (now.sa_handler == SIG_DFL) {
    rank_process = getpid();
    struct sigaction handled = {};
    handled.sa_handler = OnSigterm;
    handled.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &handled, nullptr);
  }
  // The launcher is started with SIGTERM blocked, and MPICH's hands that on to its ranks. Children must not inherit it.
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
}

}  // namespace hooke
