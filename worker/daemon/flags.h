#ifndef HOOKE_WORKER_DAEMON_FLAGS_H_
#define HOOKE_WORKER_DAEMON_FLAGS_H_

// hooke-worker's command line.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spdlog/common.h"
#include "worker/cores/choose_cores.h"
#include "worker/daemon/node_address.h"
#include "worker/daemon/worker_daemon.h"
#include "worker/gpus/choose_gpus.h"

namespace hooke {

// Facts about the machine, from which the flags' defaults are made.
struct FlagDefaults {
  std::string home;        // $HOME; empty: not set.
  std::string path;        // $PATH.
  std::string token_file;  // $HOOKE_TOKEN_FILE; empty: not set.
  std::string host_name;
  std::string own_folder;   // Folder of the running executable.
  std::vector<Core> cores;  // The cores on which this process may run. Not empty.
  uint32_t batch_cpus = 0;  // CPUs that a batch system says it gives this process here; 0: none says so.
  // Returns the GPUs that this process may use. It may take seconds, so it is called only if they matter.
  std::function<std::vector<GpuName>()> find_gpus;
};

// The flags of a site that gets its workers from Slurm.
struct SlurmFlags {
  bool enabled = false;  // False: the program is a worker.
  uint32_t ranks_max = 1024;
  std::string script;  // Absolute.
  std::vector<std::string> sbatch_flags;
};

struct WorkerFlags {
  // All options but token, version, logger, on_metrics, on_welcome, node, mpi_version, and of `launch` environment,
  // as_root and ucx_devices.
  WorkerOptions worker;
  std::string gpus;  // The text of --gpus.
  SlurmFlags slurm;
  absl::Duration exit_idle;  // The program ends when no group has run here for so long; 0: never.
  NodeAddressWish node;      // The caller makes worker.node from this and the machine's interfaces.
  std::string token_file;    // WorkerOptions.token is read from it; empty: no token.
  bool describe = false;     // Only print what this worker would use, and end.
  std::string ready_file;    // The file to write at the coordinator's welcome. Empty: write no file.
  spdlog::level::level_enum log_level = spdlog::level::info;
};

// The parsed command line. If `flags` is empty, the program ends with `exit_status`. That is 0 after --help or
// --version, and 2 after a usage error, which has been printed.
struct ParsedFlags {
  std::optional<WorkerFlags> flags;
  int exit_status = 0;
};
ParsedFlags ParseFlags(int argc, const char* const* argv, const FlagDefaults& defaults);

// Returns the flags for the workers in the batch jobs of a site, with the values of the site's agent. It leaves out
// --slots, --mpirun, --rank-binary and --log-level, whose values belong to the agent's node. It also leaves out --name,
// --state-dir and --ready-file, which each worker has for itself.
std::vector<std::string> FlagsForBatchJobs(const WorkerFlags& flags);

// Returns the flags in one line, for the log. --log-level, --describe and the details of --slurm are left out.
std::string ToString(const WorkerFlags& flags);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_FLAGS_H_
