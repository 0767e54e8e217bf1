#include "mpi_group/groups/group_nodes.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// Returns the CPUs on which this thread may run, one set for each.
std::vector<cpu_set_t> OwnCpus() {
  cpu_set_t all;
  EXPECT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  std::vector<cpu_set_t> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_ZERO(&cpus.emplace_back());
    CPU_SET(cpu, &cpus.back());
  }
  return cpus;
}

// Makes a group on one node whose rank r is bound to masks[r]. Returns whether its ranks found too few cores for all.
bool Oversubscribed(const std::vector<cpu_set_t>& masks) {
  const int n = static_cast<int>(masks.size());
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(n);
  std::vector<char> oversubscribed(n);
  RunRanks(n, [&](int rank) {
    ASSERT_EQ(sched_setaffinity(0, sizeof(masks[rank]), &masks[rank]), 0);
    GroupOptions options;
    options.node = "node";
    std::vector<char> memory;
    auto nodes = GroupNodes::Gather(*transports[rank], options, memory, SteadyNow() + absl::Seconds(30));
    ASSERT_TRUE(nodes.ok()) << nodes.status();
    ASSERT_TRUE((*nodes)->topology().shared_memory);
    oversubscribed[rank] = (*nodes)->topology().oversubscribed;
  });
  for (const char one : oversubscribed) EXPECT_EQ(one, oversubscribed[0]);
  return oversubscribed[0] != 0;
}

// Ranks that are bound to a core each have cores enough, so their waits may spin. Ranks that share a core have not,
// although the machine has more.
TEST(GroupNodesTest, BoundRanks) {
  const std::vector<cpu_set_t> cpus = OwnCpus();
  EXPECT_TRUE(Oversubscribed({cpus[0], cpus[0]}));
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  EXPECT_FALSE(Oversubscribed({cpus[0], cpus[1]}));
  EXPECT_TRUE(Oversubscribed({cpus[0], cpus[1], cpus[1]}));
}

}  // namespace
}  // namespace hooke
