#ifndef HOOKE_MPI_GROUP_NODE_PEER_PROCESSES_H_
#define HOOKE_MPI_GROUP_NODE_PEER_PROCESSES_H_

// Tells whether the process of another rank of this node has ended. A rank that is killed leaves shared memory as it
// is, so without this its peers would wait for it until their deadline.
//
// A process is watched through a pidfd (Linux 5.3), which needs no permission and never means another process that got
// the same number later. A peer in another PID namespace is not watched, because its number means nothing here. Nor is
// a peer for which the kernel or a container's rules refuse a pidfd. Not thread-safe.

#include <cstdint>
#include <vector>

namespace hooke {

// Identifies a process on its node. Peers receive the struct as raw bytes, because they run the same program.
struct ProcessIdentity {
  int64_t number = 0;  // The process's PID. 0: the process must not be watched.
  // The PID namespace of the number, as /proc names it.
  uint64_t namespace_device = 0;
  uint64_t namespace_inode = 0;
};
// Returns the identity of this process. `number` is 0 if /proc does not name the namespace.
ProcessIdentity OwnProcess();

class PeerProcesses {
 public:
  PeerProcesses() = default;
  ~PeerProcesses();
  PeerProcesses(const PeerProcesses&) = delete;
  PeerProcesses& operator=(const PeerProcesses&) = delete;

  // Starts to watch the process of the next local rank. Call it once for each local rank in order, this one included.
  // Ranks that are threads of this process are not watched. The peer's process must not have been reaped before.
  void Add(const ProcessIdentity& peer);

  // True if the process of that rank has ended. False if it is not watched or was not added yet. Takes at most one
  // system call.
  bool HasEnded(int local_rank) const;

 private:
  std::vector<int> watched_;  // A pidfd for each local rank; -1: not watched.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_PEER_PROCESSES_H_
