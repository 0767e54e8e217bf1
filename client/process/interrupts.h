#ifndef HOOKE_CLIENT_PROCESS_INTERRUPTS_H_
#define HOOKE_CLIENT_PROCESS_INTERRUPTS_H_

// Lets a command wait for Ctrl-C, SIGTERM, SIGHUP and SIGPIPE. While an Interrupts exists, these signals do not end the
// process, so the command can clean up or print something. Create it before any other thread exists, because only later
// threads inherit the blocked signals.

#include <csignal>
#include <optional>

#include "absl/time/time.h"

namespace hooke {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Waits at most `wait` for a signal; nullopt if none comes.
  std::optional<int> WaitFor(absl::Duration wait);

 private:
  sigset_t before_;
  int fd_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_INTERRUPTS_H_
