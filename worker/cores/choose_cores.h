#ifndef HOOKE_WORKER_CORES_CHOOSE_CORES_H_
#define HOOKE_WORKER_CORES_CHOOSE_CORES_H_

// Decides which cores each rank of a group gets on its node. Pure.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hooke {

// A physical core of this machine.
struct Core {
  int memory_node = 0;    // The NUMA node; on a machine without NUMA nodes, the socket.
  std::vector<int> cpus;  // Its hardware threads, by the kernel's numbers, ascending. Not empty.
};

// The number of hardware threads of all the cores.
size_t CountCpus(const std::vector<Core>& cores);

// Returns into how many equal shares the machine's CPUs are divided if each of `slots` gets one, and the worker may use
// only `given` of the `cpus` that it sees. Some batch systems give CPUs by number only, and confine no job to its own.
// `slots`, `given` and `cpus` are >= 1; a larger `given` counts as `cpus`.
uint32_t CountShares(uint32_t slots, uint32_t given, uint32_t cpus);

struct CoresWish {
  uint32_t slots = 1;  // All slots of the worker, or CountShares(); each gets an equal share of the cores. >= 1.
  uint32_t ranks = 1;  // Ranks that start now; 1 to `slots`.
};

struct CoresChoice {
  // The CPUs that each rank may run on, in order of ranks. Empty: the ranks are not bound, and `why_not` says why.
  std::vector<std::vector<int>> cpus_of_rank;
  std::string share;  // The share of each rank, like "2 cores" or "1 hardware thread".
  std::string why_not;

  bool bound() const { return !cpus_of_rank.empty(); }
};

// Chooses CPUs of `cores`, none of them in `taken`.
//
// A slot's share is `cores / slots` whole cores, rounded down, with all their hardware threads. If there are more slots
// than cores, the share is `hardware threads / slots` of these. If there are more slots than hardware threads, no rank
// is bound. No rank is bound either if too few cores are free for all ranks.
//
// All ranks get cores of one memory node if some node has enough free ones: the node with the fewest of these, so that
// larger rooms stay for larger groups. Otherwise each rank gets cores of one memory node as far as possible, and
// neighbouring ranks are on the same node.
CoresChoice ChooseCores(const std::vector<Core>& cores, const std::set<int>& taken, CoresWish wish);

// Formats CPU numbers, ascending, as the kernel and `taskset` do: "0-1,16".
std::string CpuList(const std::vector<int>& cpus);

// Says who got which cores on the worker, in one line for the job's log. `first_rank` is the first of the choice's
// ranks.
std::string SayCores(const CoresChoice& choice, const std::string& worker, uint32_t first_rank);

}  // namespace hooke

#endif  // HOOKE_WORKER_CORES_CHOOSE_CORES_H_
