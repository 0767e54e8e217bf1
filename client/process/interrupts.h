#ifndef HOOKE_CLIENT_PROCESS_INTERRUPTS_H_
#define HOOKE_CLIENT_PROCESS_INTERRUPTS_H_

// Ctrl-C, SIGTERM and SIGHUP as something to wait for instead of the end of the process. Used by the commands that must
// say or stop something when they are ended. One thread makes it before any other thread exists; threads made later
// inherit the blocked signals.

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

  // The signal that has come, or nothing when none comes within `wait`.
  std::optional<int> WaitFor(absl::Duration wait);

 private:
  sigset_t before_;
  int fd_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_PROCESS_INTERRUPTS_H_
