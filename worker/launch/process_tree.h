#ifndef HOOKE_WORKER_LAUNCH_PROCESS_TREE_H_
#define HOOKE_WORKER_LAUNCH_PROCESS_TREE_H_

// A process and all its descendants, as /proc shows them. They include children in another process group or session,
// and orphans that became children of this process or of init.
//
// A process belongs to the tree if its parent does, or if it was seen in the tree before. An orphan belongs to it if
// its environment holds the tree's mark. A process is identified by its id and start time, so a reused id is never
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
  char state = '?';          // The state's letter, as ps shows it. 'Z': dead, but not yet reaped; 'X': dead.
  uint64_t start_ticks = 0;  // Start time in clock ticks since boot.
};

// Returns the state of a process; nullopt if it is gone.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

class ProcessTree {
 public:
  // `root` is a child of this process that has not been reaped. `mark` is a unique "NAME=value" in the environment with
  // which the root was started.
  ProcessTree(pid_t root, std::string mark);

  // Scans /proc again. Returns the tree's living processes, including the root.
  std::vector<ProcessStat> Refresh();

  // Scans again and sends `signal` to each living process. Returns the number of these processes.
  int Signal(int signal);

  // Scans again and sends SIGCONT to the stopped processes. The others get no signal: Open MPI's mpirun crashes if
  // SIGCONT comes while it ends.
  void ContinueStopped();

  // Reaps the tree's dead orphans that have become children of this process. Never reaps the root.
  void ReapOrphans();

 private:
  using Key = std::pair<pid_t, uint64_t>;  // Id and start time.

  const pid_t root_;
  const std::string mark_;
  absl::flat_hash_set<Key> known_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_PROCESS_TREE_H_
