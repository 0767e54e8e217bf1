#include "worker/cores/machine_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

// A folder with the files that Linux shows in /sys/devices/system.
class MachineCoresTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(system_); }

  void Write(const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(system_ + "/" + file).parent_path());
    std::ofstream(system_ + "/" + file) << text << "\n";
  }

  // Returns the cores as text: "NODE:CPUS" for each.
  std::string Read(const std::vector<int>& cpus) {
    return absl::StrJoin(ReadCores(cpus, system_), " ", [](std::string* text, const Core& core) {
      absl::StrAppend(text, core.memory_node, ":", CpuList(core.cpus));
    });
  }

  const std::string system_ = absl::StrCat(::testing::TempDir(), "/system", getpid());
};

// Two sockets of two cores with two hardware threads each. Hardware threads outside the mask are left out.
TEST_F(MachineCoresTest, TwoSockets) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    const int core = cpu % 4;
    Write(absl::StrCat("cpu/cpu", cpu, "/topology/core_cpus_list"), absl::StrCat(core, ",", core + 4));
  }
  Write("node/node0/cpulist", "0-1,4-5");
  Write("node/node1/cpulist", "2-3,6-7");
  Write("node/possible", "0-1");
  EXPECT_EQ(Read({0, 1, 2, 3, 4, 5, 6, 7}), "0:0,4 0:1,5 1:2,6 1:3,7");
  EXPECT_EQ(Read({1, 2, 4, 6}), "0:4 0:1 1:2,6");
}

// An older kernel has another file's name, and a kernel without NUMA has only the sockets.
TEST_F(MachineCoresTest, OldKernelWithoutNuma) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string topology = absl::StrCat("cpu/cpu", cpu, "/topology/");
    Write(topology + "thread_siblings_list", cpu < 2 ? "0-1" : "2-3");
    Write(topology + "physical_package_id", absl::StrCat(cpu / 2));
  }
  EXPECT_EQ(Read({0, 1, 2, 3}), "0:0-1 1:2-3");
}

// Without the files, and with files that make no sense, each CPU is a core.
TEST_F(MachineCoresTest, VirtualMachine) {
  EXPECT_EQ(Read({0, 1, 5}), "0:0 0:1 0:5");
  Write("cpu/cpu0/topology/core_cpus_list", "0-99999999999");
  Write("cpu/cpu1/topology/core_cpus_list", "");
  Write("cpu/cpu5/topology/core_cpus_list", "0-1");
  Write("cpu/cpu5/topology/physical_package_id", "-1x");
  EXPECT_EQ(Read({0, 1, 5}), "0:0 0:1 0:5");
}

TEST_F(MachineCoresTest, Lists) {
  EXPECT_EQ(ParseCpuList("0-2,16"), (std::vector<int>{0, 1, 2, 16}));
  EXPECT_EQ(ParseCpuList("7"), (std::vector<int>{7}));
  for (const char* text : {"", "x", "1-", "-1", "2-1", "1,,2", "0-65536"}) {
    EXPECT_FALSE(ParseCpuList(text).has_value()) << text;
  }
}

// The cores of this machine have the CPUs of this process's affinity mask, each once. A narrower mask is obeyed.
TEST_F(MachineCoresTest, ThisMachine) {
  const std::vector<int> own = OwnCpus();
  std::vector<int> found;
  for (const Core& core : ReadCores(own)) found.insert(found.end(), core.cpus.begin(), core.cpus.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, own);
  std::thread([&own] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(own.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(OwnCpus(), std::vector<int>{own.back()});
  }).join();
}

}  // namespace
}  // namespace hooke
