#ifndef HOOKE_WORKER_CORES_NODE_CORES_H_
#define HOOKE_WORKER_CORES_NODE_CORES_H_

// The cores that a worker gives to the ranks of its groups, each core to one rank at a time. The workers of a machine
// know of each other's ranks through a file, in which byte N is locked while some rank has CPU N. The kernel frees the
// locks of a worker that has died. WorkerDaemon owns the object; its groups take cores.

#include <memory>
#include <string>
#include <vector>

#include "worker/cores/choose_cores.h"

namespace hooke {

// The file through which workers of this machine know of each other's ranks: any user's, in any network namespace.
constexpr char kCoresFile[] = "/dev/shm/hooke.cores";

// Cores that the ranks of one group have on this node. The destructor gives them back.
class HeldCores {
 public:
  HeldCores(CoresChoice choice, int file) : choice_(std::move(choice)), file_(file) {}
  ~HeldCores();
  HeldCores(const HeldCores&) = delete;
  HeldCores& operator=(const HeldCores&) = delete;

  // If it is not bound, no core is held.
  const CoresChoice& choice() const { return choice_; }

 private:
  const CoresChoice choice_;
  const int file_;  // The open file that has the locks; -1: none.
};

struct NodeCoresOptions {
  std::vector<Core> cores;  // The cores that the worker may use.
  uint32_t slots = 1;       // Of the worker; >= 1.
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
