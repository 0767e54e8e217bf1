#ifndef HOOKE_WORKER_LAUNCH_EXIT_ORDER_H_
#define HOOKE_WORKER_LAUNCH_EXIT_ORDER_H_

// Tells in which order processes have exited. They need not be children of this process. If one rank of a group is
// killed, its launcher kills the others within a millisecond, and only the kernel still knows which one was first.

#include <sys/types.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace hooke {

// Not thread-safe.
class ExitOrder {
 public:
  ExitOrder();
  ~ExitOrder();
  ExitOrder(const ExitOrder&) = delete;
  ExitOrder& operator=(const ExitOrder&) = delete;

  // Watches process `pid` of rank `rank`. Does nothing if the process is gone already, or if the kernel has no pidfd
  // (Linux before 5.3).
  void Add(uint32_t rank, pid_t pid);

  // Returns the ranks whose processes have exited, the first to exit first. Call it once, when all are expected to be
  // gone: a second call may give another order.
  std::vector<uint32_t> Exited() const;

 private:
  int epoll_ = -1;                                 // Its ready list is in the order in which the processes exited.
  std::vector<std::pair<uint32_t, int>> watched_;  // Ranks and their pidfds.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_EXIT_ORDER_H_
