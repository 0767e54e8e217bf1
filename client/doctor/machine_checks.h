#ifndef HOOKE_CLIENT_DOCTOR_MACHINE_CHECKS_H_
#define HOOKE_CLIENT_DOCTOR_MACHINE_CHECKS_H_

// Checks of what the kernel and the disks of this machine offer. Each function judges values that have been read. Pure.

#include "client/doctor/finding.h"
#include "client/doctor/machine_values.h"

namespace hooke {

Finding CheckHostName(const MachineValues& machine);
Finding CheckCores(const MachineValues& machine);
Finding CheckMemory(const MachineValues& machine);
Finding CheckSharedMemory(const MachineValues& machine);
Finding CheckOpenFiles(const MachineValues& machine);
Finding CheckProcesses(const MachineValues& machine);
Finding CheckClock(const MachineValues& machine);
Finding CheckPort(const MachineValues& machine);
Finding CheckStateSpace(const MachineValues& machine);
Finding CheckStateSpeed(const MachineValues& machine);

// Returns the CPUs that the narrowest cgroup allows; nullopt if none of them has a limit.
std::optional<double> CgroupCpus(const CgroupLimits& cgroup);

// Reads the last line that `df --output=size,avail -B1` prints; nullopt if it is no such line.
std::optional<Filesystem> ParseDf(const std::string& text);

// Reads the seconds that `dd` names in its last line: "... 65536 bytes (66 kB, 64 KiB) copied, 0.0123 s, 5.3 MB/s".
std::optional<double> ParseDdSeconds(const std::string& text);

// Returns the names of this user's entries in /dev/shm that have not changed for an hour and that no process uses. An
// entry of which the use is not known counts as used.
std::vector<std::string> Leftovers(const std::vector<SharedEntry>& entries);

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_MACHINE_CHECKS_H_
