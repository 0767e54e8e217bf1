#ifndef HOOKE_MPI_GROUP_NODE_PEER_PROCESSES_H_
#define HOOKE_MPI_GROUP_NODE_PEER_PROCESSES_H_

// Tells whether the process of another rank of this node has ended. A rank that is killed leaves shared memory as it
// is, so without this its peers would wait for it until their deadline.
//
// A process is watched through a pidfd (Linux 5.3), which needs no permission and never means another process that got
// the same number later. A peer whose number means nothing here, because it lives in another PID namespace, is not
// watched; neither is one for which the kernel, or a container's rules, refuse a pidfd. Not thread-safe.

#include <cstdint>
#include <vector>

namespace hooke {

// Identifies a process on its node. Sent to peers as these bytes, since they run the same program.
struct ProcessIdentity {
  int64_t number = 0;  // Its PID; 0: must not be watched.
  // The PID namespace of the number, as /proc names it.
  uint64_t namespace_device = 0;
  uint64_t namespace_inode = 0;
};
// This process. Its number is 0 if /proc does not name the namespace.
ProcessIdentity OwnProcess();

class PeerProcesses {
 public:
  PeerProcesses() = default;
  ~PeerProcesses();
  PeerProcesses(const PeerProcesses&) = delete;
  PeerProcesses& operator=(const PeerProcesses&) = delete;

  // Call once for each local rank in turn, also for this one: threads of this process are not watched. The process must
  // not be reaped before.
  void Add(const ProcessIdentity& peer);

  // Whether the process of that rank has ended, as far as it is watched; false for a rank that was not added yet. One
  // system call.
  bool HasEnded(int local_rank) const;

 private:
  std::vector<int> watched_;  // A pidfd for each local rank; -1: not watched.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_PEER_PROCESSES_H_
