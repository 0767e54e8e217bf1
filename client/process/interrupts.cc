#include "client/process/interrupts.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

namespace hooke {

Interrupts::Interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  // SIGPIPE means that nobody reads the command's output any more, as in `hooke run ... | head`.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    sigaddset(&signals, signal);
  }
  // A shell starts background jobs with SIGINT ignored, but the command should get it.
  std::signal(SIGINT, SIG_DFL);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

Interrupts::~Interrupts() {
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> Interrupts::WaitFor(absl::Duration wait) {
  pollfd ready = {fd_, POLLIN, 0};
  poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(wait), 0, 3600000)));
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace hooke
