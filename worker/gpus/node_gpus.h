#ifndef HOOKE_WORKER_GPUS_NODE_GPUS_H_
#define HOOKE_WORKER_GPUS_NODE_GPUS_H_

// The GPUs that a worker gives to the ranks of its groups. The workers of a machine know of each other's ranks through
// the locks of a file (files/byte_locks.h). A hash of a GPU's name is its number there. WorkerDaemon owns the object;
// its groups take GPUs.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "files/byte_locks.h"
#include "worker/gpus/choose_gpus.h"

namespace hooke {

// The file through which workers of this machine know of each other's ranks. Workers of all users share it, in all
// network namespaces.
constexpr char kGpusFile[] = "/dev/shm/hooke.gpus";

struct NodeGpusOptions {
  std::vector<GpuName> gpus;  // The GPUs that the worker may use.
  uint32_t slots = 1;         // Of the worker; >= 1.
  std::string file = kGpusFile;
};

class NodeGpus;

// GPUs that the ranks of one group have on this node. The destructor gives them back.
class HeldGpus {
 public:
  // `from` outlives the object.
  HeldGpus(NodeGpus& from, std::vector<std::vector<size_t>> chosen) : from_(from), chosen_(std::move(chosen)) {}
  ~HeldGpus();
  HeldGpus(const HeldGpus&) = delete;
  HeldGpus& operator=(const HeldGpus&) = delete;

  // The names of each rank's GPUs.
  std::vector<std::vector<GpuName>> gpus_of_rank() const;
  // Whether one of them served another rank when they were taken.
  bool shared() const { return shared_; }
  // Why the ranks of other workers were not known: "/dev/shm/hooke.gpus cannot be opened: ..."; empty: they were.
  const std::string& others_unknown() const { return others_unknown_; }

 private:
  friend class NodeGpus;

  NodeGpus& from_;
  const std::vector<std::vector<size_t>> chosen_;
  bool shared_ = false;
  std::string others_unknown_;
};

// Thread-safe.
class NodeGpus {
 public:
  explicit NodeGpus(NodeGpusOptions options);

  // Takes GPUs for so many ranks, 1 to `slots`, as ChooseGpus says. `each`: GPUs of each rank; 0: GpusOfASlot. A GPU
  // that another worker's rank has counts as one with a user. Nothing waits: if too few GPUs are free, ranks share
  // some. If the file cannot be used, other workers are not known (HeldGpus::others_unknown). Null if the worker has no
  // GPU.
  std::unique_ptr<HeldGpus> Take(uint32_t ranks, uint32_t each);

 private:
  friend class HeldGpus;

  void GiveBack(const std::vector<std::vector<size_t>>& chosen);

  const NodeGpusOptions options_;
  absl::Mutex mutex_;
  std::unique_ptr<ByteLocks> locks_ ABSL_GUARDED_BY(mutex_);  // Of this worker; null: the file cannot be used.
  absl::Status no_locks_ ABSL_GUARDED_BY(mutex_);             // Why `locks_` is null.
  std::vector<uint32_t> own_users_ ABSL_GUARDED_BY(mutex_);   // Ranks of this worker, by GPU. Those above 0 are locked.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_GPUS_NODE_GPUS_H_
