#ifndef HOOKE_WORKER_CORES_NODE_CORES_H_
#define HOOKE_WORKER_CORES_NODE_CORES_H_

// The cores that a worker gives to the ranks of its groups, each core to one rank at a time. The workers of a machine
// know of each other's ranks through the locks of a file (files/byte_locks.h), in which thing N is CPU N. WorkerDaemon
// owns the object; its groups take cores.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "files/byte_locks.h"
#include "worker/cores/choose_cores.h"

namespace hooke {

// The file through which workers of this machine know of each other's ranks: any user's, in any network namespace.
constexpr char kCoresFile[] = "/dev/shm/hooke.cores";

// Cores that the ranks of one group have on this node. The destructor gives them back.
class HeldCores {
 public:
  // `locks` are those of the CPUs; null: no CPU is held.
  HeldCores(CoresChoice choice, std::unique_ptr<ByteLocks> locks)
      : choice_(std::move(choice)), locks_(std::move(locks)) {}

  // If it is not bound, no core is held.
  const CoresChoice& choice() const { return choice_; }

 private:
  const CoresChoice choice_;
  const std::unique_ptr<ByteLocks> locks_;
};

struct NodeCoresOptions {
  std::vector<Core> cores;  // The cores that the worker may use.
  uint32_t slots = 1;       // The slots of the worker, or CountShares(); >= 1.
  std::string file = kCoresFile;
};

class NodeCores {
 public:
  explicit NodeCores(NodeCoresOptions options) : options_(std::move(options)) {}

  // Takes cores for so many ranks, 1 to `slots`, as ChooseCores says. If too few cores are free, it does not wait for
  // them, and the ranks are not bound. Never null. Thread-safe.
  std::unique_ptr<HeldCores> Take(uint32_t ranks) const;

 private:
  const NodeCoresOptions options_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_CORES_NODE_CORES_H_
