#ifndef HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_
#define HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_

// Makes the command that starts a group's processes on one node. Pure: nothing is started here; process.h does that.
// launcher_output.h reads what the launcher (mpirun) prints.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Intel MPI runs ranks that were built with MPICH, because it keeps MPICH's binary interface.
enum class MpiFlavour { kOpenMpi, kMpich, kIntelMpi };

// Returns the MPI library that this build's ranks are linked with; never kIntelMpi.
MpiFlavour BuiltFlavour();

// "openmpi", "mpich" or "intelmpi".
absl::string_view NameOf(MpiFlavour flavour);

// Returns file names of that library's mpirun. The most specific name comes first, because both libraries may be
// installed.
std::vector<std::string> MpirunNames(MpiFlavour flavour);

// A node of a group that runs on several nodes.
struct LaunchHost {
  std::string address;  // IPv4, or for Open MPI also IPv6.
  uint32_t ranks = 0;
};

// True for the text of an IPv6 address; the text is an IP address or empty.
bool IsIpv6Text(absl::string_view address);

// Returns the name by which mpirun knows the node of hosts[index]: its address if that is IPv4. Open MPI allows no
// colons in names. So mpirun's own node, the first, is "localhost" if it has an IPv6 address, and any other such node
// is a number of the range 240.0.0.0/8. Nobody has such an address, no name server is asked for it, and only our agent
// reads it.
std::string MpirunNameOf(const std::vector<LaunchHost>& hosts, size_t index);
// Returns the address of the node that mpirun knows by `name`; `name` itself if there is none.
std::string AddressOfMpirunName(const std::vector<LaunchHost>& hosts, const std::string& name);

struct LaunchOptions {
  MpiFlavour flavour = MpiFlavour::kOpenMpi;
  std::string mpirun;       // Absolute path, or a name on the PATH.
  uint32_t ranks = 1;       // >= 1.
  std::string rank_binary;  // Absolute path of hooke-rank, or of another program.
  std::vector<std::string> rank_arguments;
  bool tells_threads = true;  // Whether each rank gets the argument --threads=N, too.
  // Two folders of this group alone: one for the launcher's session files, one (on a tmpfs) for the shared memory of
  // the ranks. The caller removes them after the group's end.
  std::string session_folder;
  std::string memory_folder;
  uint32_t threads_per_rank = 1;         // Cores for each rank; >= 1.
  bool as_root = false;                  // Whether the caller runs as root, which Open MPI must be told.
  std::vector<std::string> environment;  // The environment of the calling process, as "NAME=value".
  // Variables for the launcher and the ranks, as "NAME=value". They replace variables of the same names.
  std::vector<std::string> added_environment;

  // The CPUs on which each rank of this node may run, like "0-1,16", keyed by rank. It needs `rank_script`. Empty: the
  // ranks run on all CPUs of the calling process.
  std::map<uint32_t, std::string> cpus_of_rank;
  // The GPUs that each rank of this node sees, as the value of CUDA_VISIBLE_DEVICES, keyed by rank. It needs
  // `rank_script`. Empty: the ranks have the variable of their environment.
  std::map<uint32_t, std::string> gpus_of_rank;

  // ---- Mainly for groups that run on several nodes.

  // All nodes, in order of ranks; the first one is that of mpirun. Empty: the group runs on this node alone.
  std::vector<LaunchHost> hosts;
  std::string remote_agent;  // Path of hooke-remote, without spaces and colons.
  // The file with RankScript's text. If the group runs on this node alone, it may be empty: the ranks then start
  // without a script.
  std::string rank_script;
  std::string rank_folder;  // The working folder of the ranks on this node.
  // This node's network interfaces for MPI, that of its address first. Their names may differ between nodes. Empty: MPI
  // chooses.
  std::vector<std::string> interfaces;
  // The only devices that UCX may use, by its own names (UcxDevices). Empty: it takes the fastest that it finds.
  std::vector<std::string> ucx_devices;
};

struct LaunchCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // The whole environment, as "NAME=value".
};

// Returns the command that starts the group on this node. Every rank runs `rank_binary rank_arguments`, is killed by
// the kernel when its parent dies, and has its output labelled.
//
// Variables of another launcher or scheduler are not passed on: they would make this mpirun believe that it is part of
// another start.
//
// If the group has several nodes, mpirun calls `remote_agent ADDRESS COMMAND...` for each other one. Every rank runs
// the script that the variable HOOKE_RANK_SCRIPT of its own node names, because paths may differ between nodes.
LaunchCommand MakeLaunchCommand(const LaunchOptions& options);

// Returns the shell script that runs one rank on this node. It binds itself to the rank's CPUs, and sets what GPUs the
// rank sees, before the rank's program and its threads exist. If that fails, the rank runs unbound and says so. For a
// group on several nodes, it also sets the variables whose values must not come from mpirun's node.
std::string RankScript(const LaunchOptions& options);

// Returns the command that starts the MPI library's own daemon on a node other than mpirun's. mpirun made `arguments`.
// Arguments that name files or devices of mpirun's node are replaced. The program lies beside this node's mpirun.
// INVALID_ARGUMENT: the daemon would start a program that is not the library's.
absl::StatusOr<LaunchCommand> MakeNodeDaemonCommand(const LaunchOptions& options,
                                                    const std::vector<std::string>& arguments);

// The part of a path behind its last slash.
absl::string_view FileName(absl::string_view path);

// Returns the path of the MPI library's daemon on this node, beside its mpirun; only its name if mpirun is only a name.
std::string NodeDaemonPath(const LaunchOptions& options);

// Returns the file name of the library's daemon: "orted", "hydra_pmi_proxy" or "hydra_bstrap_proxy".
std::string NodeDaemonName(MpiFlavour flavour);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_LAUNCH_COMMAND_H_
