#ifndef HOOKE_WORKER_CORES_MACHINE_CORES_H_
#define HOOKE_WORKER_CORES_MACHINE_CORES_H_

// Reads the machine's cores from the kernel.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/cores/choose_cores.h"

namespace hooke {

// Returns the CPUs that this process may run on, ascending: its affinity mask, which cgroups narrow too. Not empty.
std::vector<int> OwnCpus();

// Returns the cores that the given CPUs belong to, each with those of its hardware threads that are among `cpus`.
// `system` is the kernel's folder; tests give another. A CPU whose files are missing there, as on some virtual
// machines, counts as a core of its own.
std::vector<Core> ReadCores(const std::vector<int>& cpus, const std::string& system = "/sys/devices/system");

// Parses a list of the kernel, like "0-1,16"; nullopt if it is malformed.
std::optional<std::vector<int>> ParseCpuList(absl::string_view text);

}  // namespace hooke

#endif  // HOOKE_WORKER_CORES_MACHINE_CORES_H_
