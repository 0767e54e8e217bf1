#include "worker/cores/machine_cores.h"

#include <errno.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr int kCpusMax = 1 << 16;

std::string ReadFile(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  if (file.is_open()) text << file.rdbuf();
  return std::string(absl::StripAsciiWhitespace(text.str()));
}

// Returns the NUMA node of each CPU; empty if the kernel knows no NUMA nodes.
std::map<int, int> MemoryNodes(const std::string& system) {
  std::map<int, int> node_of_cpu;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(system + "/node", error)) {
    const std::string name = entry.path().filename().string();
    int node;
    if (name.rfind("node", 0) != 0 || !absl::SimpleAtoi(name.substr(4), &node)) continue;
    const auto cpus = ParseCpuList(ReadFile(entry.path().string() + "/cpulist"));
    if (!cpus.has_value()) continue;
    for (const int cpu : *cpus) node_of_cpu[cpu] = node;
  }
  return node_of_cpu;
}

// Returns the first hardware thread of the CPU's core, whoever may run on it. It identifies the core.
int FirstSibling(const std::string& topology, int cpu) {
  // Linux before 5.3 has only the second name.
  for (const char* name : {"/core_cpus_list", "/thread_siblings_list"}) {
    const auto siblings = ParseCpuList(ReadFile(topology + name));
    if (siblings.has_value() && std::count(siblings->begin(), siblings->end(), cpu) > 0) {
      return *std::min_element(siblings->begin(), siblings->end());
    }
  }
  return cpu;
}

}  // namespace

std::vector<int> OwnCpus() {
  // The kernel refuses a set that is smaller than its own.
  for (int size = CPU_SETSIZE; size <= kCpusMax; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    const size_t bytes = CPU_ALLOC_SIZE(size);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    std::vector<int> cpus;
    for (int cpu = 0; known && cpu < size; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (!cpus.empty()) return cpus;
    if (!too_small) break;
  }
  return {0};
}

std::vector<Core> ReadCores(const std::vector<int>& cpus, const std::string& system) {
  const std::map<int, int> node_of_cpu = MemoryNodes(system);
  std::map<int, Core> cores;  // By the first hardware thread.
  for (const int cpu : cpus) {
    const std::string topology = absl::StrCat(system, "/cpu/cpu", cpu, "/topology");
    Core& core = cores[FirstSibling(topology, cpu)];
    core.cpus.push_back(cpu);
    const auto node = node_of_cpu.find(cpu);
    int socket;
    if (node != node_of_cpu.end()) {
      core.memory_node = node->second;
    } else if (absl::SimpleAtoi(ReadFile(topology + "/physical_package_id"), &socket)) {
      core.memory_node = socket;
    }
  }
  std::vector<Core> list;
  list.reserve(cores.size());
  for (auto& [first, core] : cores) list.push_back(std::move(core));
  return list;
}

std::optional<std::vector<int>> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first;
    if (!absl::SimpleAtoi(ends.first, &first)) return std::nullopt;
    int last = first;
    if (absl::StrContains(part, '-') && !absl::SimpleAtoi(ends.second, &last)) return std::nullopt;
    if (first < 0 || last < first || last >= kCpusMax) return std::nullopt;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace hooke
