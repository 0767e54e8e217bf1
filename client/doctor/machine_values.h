#ifndef HOOKE_CLIENT_DOCTOR_MACHINE_VALUES_H_
#define HOOKE_CLIENT_DOCTOR_MACHINE_VALUES_H_

// The values of a machine that the checks of `hooke doctor` judge. read_machine.h reads them; tests make them by hand.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/doctor/run_commands.h"

namespace hooke {

// A network address of this machine.
struct OwnAddress {
  std::string interface;  // "eth0".
  std::string address;    // "10.0.0.1".
};

// The facts that `hooke-worker --describe` prints, one line for each field. A worker that is started on this machine
// would use these values.
struct WorkerDescription {
  std::string version;
  std::string mpi;                    // "openmpi" or "mpich": the MPI library that the ranks are linked with.
  std::string mpirun;                 // The mpirun of that library; a bare name if there is none on the PATH.
  std::string rank_binary;            // Path of hooke-rank.
  std::string address;                // The address for groups on several nodes; empty: there is none.
  std::string interface;              // The interface of `address`.
  std::vector<OwnAddress> addresses;  // All addresses of this machine, without loopback.
};

// The size and the free space of a folder's filesystem, in bytes, as `df` prints them.
struct Filesystem {
  uint64_t size = 0;
  uint64_t free = 0;  // For users other than root.
};

// A file or folder of Hooke in /dev/shm. A process uses a folder if it has a socket in it, and a file if its id is in
// the file's name.
struct SharedEntry {
  std::string name;                // "hooke-1234-5f...", "hooke-Xa3bC9".
  bool ours = false;               // It belongs to this user.
  absl::Duration age;              // The time since it was made or changed.
  std::optional<bool> has_socket;  // Whether a process uses it; nullopt: not known.
};

// The limit of processor time, or of memory, of the cgroups that this process is in.
struct CgroupLimits {
  // One text for each cgroup, from the own one up: "QUOTA PERIOD" in microseconds, where QUOTA may be "max" or -1.
  std::vector<std::string> cpu;
  // One for each cgroup, in bytes: the limit and the usage.
  struct Memory {
    std::string limit;  // "max" or a number.
    std::string usage;
  };
  std::vector<Memory> memory;
};

struct MachineValues {
  std::string own_version;   // Of this program.
  std::string programs_dir;  // Where it looks for the others.
  bool is_root = false;

  // Programs of Hooke that are missing in programs_dir.
  std::vector<std::string> missing_programs;
  CommandOutcome worker_describe;  // hooke-worker --describe.
  CommandOutcome mpirun_version;
  CommandOutcome mpirun_start;      // Two processes that each print kStartedWord.
  CommandOutcome rank_libraries;    // ldd hooke-rank.
  std::string blas_path;            // Where libblas.so.3 of `rank_libraries` really lies; empty: it has none.
  CommandOutcome python;            // kPythonScript.
  CommandOutcome nvidia_smi;        // nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  bool nvidia_device = false;       // There is a /dev/nvidiactl.
  CommandOutcome shared_libraries;  // ldconfig -p
  CommandOutcome nvcc;              // nvcc --version

  std::string host_name;
  std::string etc_hosts;       // The text of /etc/hosts.
  CommandOutcome host_lookup;  // getent ahosts HOST_NAME

  int online_cpus = 0;
  int own_cpus = 0;  // The CPUs in this process's affinity mask.
  CgroupLimits cgroup;
  std::string meminfo;                 // The text of /proc/meminfo.
  std::string own_limits;              // The text of /proc/self/limits.
  CommandOutcome shared_memory_space;  // df of /dev/shm.
  std::vector<SharedEntry> shared_entries;

  std::optional<bool> clock_synchronised;  // nullopt: the kernel does not tell.

  int port = 0;  // The port where hooke-server listens, or would listen.
  bool port_is_free = true;
  std::string port_owner;  // Like "hooke-server (pid 12)"; empty: not known.

  std::string state_dir;
  std::string state_probe_dir;  // state_dir, or if that does not exist, its nearest folder that does.
  CommandOutcome state_space;   // df of state_probe_dir.
  CommandOutcome state_writes;  // dd of kStateWrites synchronous writes into state_probe_dir.
};

// mpirun is tried with processes that print this word, one line each.
constexpr char kStartedWord[] = "hooke-doctor-started";
constexpr int kStateWrites = 16;

}  // namespace hooke

#endif  // HOOKE_CLIENT_DOCTOR_MACHINE_VALUES_H_
