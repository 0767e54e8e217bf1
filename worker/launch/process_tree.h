#ifndef HOOKE_WORKER_LAUNCH_PROCESS_TREE_H_
#define HOOKE_WORKER_LAUNCH_PROCESS_TREE_H_

// A process and everything that came from it, as /proc shows it: also children that took another process group or
// session, and orphans that fell to this process or to init. Used by process.h to leave nothing behind.
//
// A process belongs to the tree when its parent does, when it was seen in the tree before, or when it is an orphan
// whose environment holds the tree's mark. Processes are told apart by id and start time, so a reused id is never
// signalled. Not thread-safe.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace hooke {

struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';          // As ps shows it; 'Z': dead, not yet reaped.
  uint64_t start_ticks = 0;  // Since boot.
};

// One process, or nothing when it is gone.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

class ProcessTree {
 public:
  // `root`: a child of this process that has not been reaped. `mark`: "NAME=value", unique, in the environment the root
  // was started with.
  ProcessTree(pid_t root, std::string mark);

  // Looks again. The tree's processes that live, the root too.
  std::vector<ProcessStat> Refresh();

  // Looks again and sends `signal` to each that lives; returns how many there were.
  int Signal(int signal);

  // Looks again and lets those go on that are stopped. Others get no signal: a process that is about to end may take
  // SIGCONT badly (Open MPI's mpirun crashes).
  void ContinueStopped();

  // Reaps the tree's dead orphans that are this process's children by now; never the root.
  void ReapOrphans();

 private:
  using Key = std::pair<pid_t, uint64_t>;  // Id and start time.

  const pid_t root_;
  const std::string mark_;
  absl::flat_hash_set<Key> known_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_PROCESS_TREE_H_
