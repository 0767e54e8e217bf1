#ifndef HOOKE_WORKER_LAUNCH_LIVES_H_
#define HOOKE_WORKER_LAUNCH_LIVES_H_

// For tests: whether a process lives.

#include <sys/types.h>

#include <optional>

#include "worker/launch/process_tree.h"

namespace hooke {

// True if the process is neither gone nor dead.
inline bool Lives(pid_t pid) {
  const std::optional<ProcessStat> stat = ReadProcessStat(pid);
  return stat.has_value() && stat->state != 'Z' && stat->state != 'X';
}

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_LIVES_H_
