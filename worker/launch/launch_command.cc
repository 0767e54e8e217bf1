#include "worker/launch/launch_command.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "worker/launch/shell_quoted.h"

namespace hooke {
namespace {

// Prefixes of environment variables that are not for ranks. A scheduler or another launcher sets most of them for this
// process. The cluster's token is for the worker alone.
constexpr absl::string_view kForeignPrefixes[] = {
    "HOOKE_TOKEN_FILE=", "SLURM_",         "PMI_",  "PMIX_", "HYDRA_",        "HYDI_",         "ORTE_",
    "OMPI_COMM_",        "OMPI_UNIVERSE_", "MPIR_", "PRTE_", "OMPI_MCA_ess_", "OMPI_MCA_orte_"};

bool IsForeign(absl::string_view variable) {
  for (absl::string_view prefix : kForeignPrefixes) {
    if (absl::StartsWith(variable, prefix)) return true;
  }
  return false;
}

void SetVariable(absl::string_view name, absl::string_view value, std::vector<std::string>& environment) {
  const std::string prefix = absl::StrCat(name, "=");
  std::vector<std::string> kept;
  for (std::string& variable : environment) {
    if (!absl::StartsWith(variable, prefix)) kept.push_back(std::move(variable));
  }
  kept.push_back(absl::StrCat(prefix, value));
  environment = std::move(kept);
}

bool HasVariable(absl::string_view name, const std::vector<std::string>& environment) {
  const std::string prefix = absl::StrCat(name, "=");
  for (const std::string& variable : environment) {
    if (absl::StartsWith(variable, prefix)) return true;
  }
  return false;
}

void Append(std::initializer_list<absl::string_view> parts, std::vector<std::string>& argv) {
  for (absl::string_view part : parts) argv.emplace_back(part);
}

void AppendOpenMpi(const LaunchOptions& options, std::vector<std::string>& argv) {
  auto parameter = [&argv](absl::string_view name, absl::string_view value) {
    Append({absl::string_view("--mca"), name, value}, argv);
  };
  // The user may choose more ranks than cores. mpirun binds no ranks, because it does not know the cores of other
  // groups. RankScript binds them.
  Append({"--oversubscribe", "--bind-to", "none", "--tag-output"}, argv);
  if (options.as_root) argv.push_back("--allow-run-as-root");
  parameter("orte_tmpdir_base", options.session_folder);
  parameter("btl_vader_backing_directory", options.memory_folder);
  parameter("osc_sm_backing_directory", options.memory_folder);
  // mpirun knows only its own ranks, not other groups on the same cores, so waiting ranks always yield.
  parameter("mpi_yield_when_idle", "1");
  // A single TCP connection reaches only half of a link's speed while both directions are used at once.
  parameter("btl_tcp_links", "4");
}

// Parameters of Open MPI whose values name files or devices of one node.
constexpr absl::string_view kNodeParameters[] = {"orte_tmpdir_base", "btl_vader_backing_directory",
                                                 "osc_sm_backing_directory", "oob_tcp_if_include"};

// The program that Intel MPI's daemon starts, and that starts the ranks.
constexpr absl::string_view kIntelProxy = "hydra_pmi_proxy";

// If a group runs on several nodes, mpirun starts this program for each rank. It becomes the rank.
constexpr std::initializer_list<absl::string_view> kRankProgram = {"sh", "-c", "exec sh \"$HOOKE_RANK_SCRIPT\""};

std::string HostList(const std::vector<LaunchHost>& hosts) {
  std::string list;
  for (size_t i = 0; i < hosts.size(); ++i) {
    absl::StrAppend(&list, i > 0 ? "," : "", MpirunNameOf(hosts, i), ":", hosts[i].ranks);
  }
  return list;
}

void AppendOpenMpiHosts(const LaunchOptions& options, std::vector<std::string>& argv) {
  const std::string hosts = HostList(options.hosts);
  // The daemons stay attached, so that each Hooke worker owns the whole tree of its node.
  Append({"--host", absl::string_view(hosts), "--map-by", "slot", "--leave-session-attached", "--mca", "plm", "rsh",
          "--mca", "plm_rsh_agent", absl::string_view(options.remote_agent), "--mca", "plm_rsh_no_tree_spawn", "1"},
         argv);
  if (options.interfaces.empty()) return;
  Append({"--mca", "oob_tcp_if_include"}, argv);
  argv.push_back(absl::StrJoin(options.interfaces, ","));
}

// Appends Intel MPI's options, and the ranks' command for each node: `-hosts` takes no number of ranks.
void AppendIntelMpiNodes(const LaunchOptions& options, std::vector<std::string>& argv) {
  Append({"-launcher", "ssh", "-launcher-exec", absl::string_view(options.remote_agent), "-genvnone", "-prepend-rank"},
         argv);
  // Daemons connect to mpirun at the address of this interface. Otherwise they would look up the name of its node.
  if (!options.interfaces.empty()) Append({"-iface", absl::string_view(options.interfaces[0])}, argv);
  for (size_t i = 0; i < options.hosts.size(); ++i) {
    if (i > 0) argv.emplace_back(":");
    // mpirun must know its own node, whose name may lead nowhere.
    const std::string name = i == 0 ? "localhost" : MpirunNameOf(options.hosts, i);
    Append({"-n", absl::StrCat(options.hosts[i].ranks), "-host", absl::string_view(name)}, argv);
    Append(kRankProgram, argv);
  }
}

void AppendMpich(const LaunchOptions& options, std::vector<std::string>& argv) {
  if (options.hosts.empty()) {
    Append({"-launcher", "fork", "-prepend-rank"}, argv);
    return;
  }
  const std::string hosts = HostList(options.hosts);
  // Without -genvnone all ranks would get the environment of mpirun's node.
  Append({"-launcher", "ssh", "-launcher-exec", absl::string_view(options.remote_agent), "-hosts",
          absl::string_view(hosts), "-genvnone", "-prepend-rank"},
         argv);
}

// Returns the environment of the launcher on this node, of the MPI library's daemon, and of the ranks.
std::vector<std::string> MakeEnvironment(const LaunchOptions& options);

}  // namespace

absl::string_view FileName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

absl::string_view NameOf(MpiFlavour flavour) {
  switch (flavour) {
    case MpiFlavour::kOpenMpi:
      return "openmpi";
    case MpiFlavour::kMpich:
      return "mpich";
    case MpiFlavour::kIntelMpi:
      return "intelmpi";
  }
  return "";
}

MpiFlavour BuiltFlavour() {
#ifdef HOOKE_MPICH
  return MpiFlavour::kMpich;
#else
  return MpiFlavour::kOpenMpi;
#endif
}

std::vector<std::string> MpirunNames(MpiFlavour flavour) {
  if (flavour == MpiFlavour::kOpenMpi) return {"mpirun.openmpi", "mpirun"};
  return {"mpirun.mpich", "mpiexec.hydra", "mpirun"};
}

LaunchCommand MakeLaunchCommand(const LaunchOptions& options) {
  LaunchCommand command;
  if (options.flavour == MpiFlavour::kIntelMpi && !options.hosts.empty()) {
    command.argv = {options.mpirun};
    AppendIntelMpiNodes(options, command.argv);
    command.environment = MakeEnvironment(options);
    return command;
  }
  command.argv = {options.mpirun, "-n", absl::StrCat(options.ranks)};
  if (options.flavour == MpiFlavour::kOpenMpi) {
    AppendOpenMpi(options, command.argv);
  } else {
    AppendMpich(options, command.argv);
  }
  command.environment = MakeEnvironment(options);
  if (!options.hosts.empty()) {
    if (options.flavour == MpiFlavour::kOpenMpi) AppendOpenMpiHosts(options, command.argv);
    Append(kRankProgram, command.argv);
    return command;
  }
  if (!options.rank_script.empty()) {
    Append({"sh", absl::string_view(options.rank_script)}, command.argv);
    return command;
  }
  Append({"setpriv", "--pdeathsig", "KILL", "--"}, command.argv);
  command.argv.push_back(options.rank_binary);
  command.argv.insert(command.argv.end(), options.rank_arguments.begin(), options.rank_arguments.end());
  if (options.tells_threads) command.argv.push_back(absl::StrCat("--threads=", options.threads_per_rank));
  return command;
}

namespace {

void SetIntelMpi(const LaunchOptions& options, std::vector<std::string>& environment) {
  // The ranks are bound by RankScript; by default the library would bind them again when they start.
  SetVariable("I_MPI_PIN", "0", environment);
  SetVariable("I_MPI_SHM_FILE_PREFIX_4K", options.memory_folder, environment);
  if (options.hosts.empty()) return;
  // mpirun starts the daemons of all nodes. By default those of 16 nodes would start the others.
  SetVariable("I_MPI_HYDRA_BRANCH_COUNT", absl::StrCat(options.hosts.size()), environment);
  if (!options.interfaces.empty() && !HasVariable("FI_TCP_IFACE", environment)) {
    SetVariable("FI_TCP_IFACE", options.interfaces[0], environment);
  }
}

std::vector<std::string> MakeEnvironment(const LaunchOptions& options) {
  std::vector<std::string> environment;
  for (const std::string& variable : options.environment) {
    if (!IsForeign(variable)) environment.push_back(variable);
  }
  // By default LibTorch and BLAS use every core, so several ranks on a node would compete for them.
  for (absl::string_view name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    SetVariable(name, absl::StrCat(options.threads_per_rank), environment);
  }
  SetVariable("TMPDIR", options.session_folder, environment);
  // Keeps hwloc from looking for graphics cards. For these it asks X displays :0 to :9, twice in mpirun and once in
  // each rank. Where no display listens, libxcb tries TCP and looks up "localhost". If /etc/hosts does not have that
  // name, each look-up waits for a name server.
  if (!HasVariable("HWLOC_COMPONENTS", environment)) {
    SetVariable("HWLOC_COMPONENTS", "-gl,-opencl", environment);
  }
  if (options.flavour == MpiFlavour::kMpich) SetVariable("UCX_POSIX_DIR", options.memory_folder, environment);
  if (options.flavour == MpiFlavour::kIntelMpi) SetIntelMpi(options, environment);
  if (!options.hosts.empty()) SetVariable("HOOKE_RANK_SCRIPT", options.rank_script, environment);
  if (!options.ucx_devices.empty()) {
    SetVariable("UCX_NET_DEVICES", absl::StrJoin(options.ucx_devices, ","), environment);
  }
  for (const std::string& variable : options.added_environment) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(variable, absl::MaxSplits('=', 1));
    SetVariable(parts.first, parts.second, environment);
  }
  return environment;
}

constexpr absl::string_view kCaseOfRank = "case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$PMIX_RANK}} in\n";

// Returns the lines that bind the shell, and so the program that takes its place, to the CPUs of its rank.
std::string BindingScript(const std::map<uint32_t, std::string>& cpus_of_rank) {
  if (cpus_of_rank.empty()) return "";
  std::string script(kCaseOfRank);
  for (const auto& [rank, cpus] : cpus_of_rank) {
    absl::StrAppend(&script, rank, ") taskset -cp ", ShellQuoted(cpus), " $$ ;;\n");
  }
  return script + "esac >/dev/null || echo 'this rank could not be bound to its cores and runs on all' >&2\n";
}

// Returns the lines that show a rank only its GPUs.
std::string GpuScript(const std::map<uint32_t, std::string>& gpus_of_rank) {
  if (gpus_of_rank.empty()) return "";
  std::string script(kCaseOfRank);
  for (const auto& [rank, gpus] : gpus_of_rank) {
    absl::StrAppend(&script, rank, ") export CUDA_VISIBLE_DEVICES=", ShellQuoted(gpus), " ;;\n");
  }
  return script + "esac\n";
}

}  // namespace

std::string RankScript(const LaunchOptions& options) {
  std::string script = BindingScript(options.cpus_of_rank) + GpuScript(options.gpus_of_rank);
  const auto set = [&script](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&script, "export ", name, "=", ShellQuoted(value), "\n");
  };
  if (!options.hosts.empty() && options.flavour == MpiFlavour::kOpenMpi) {
    set("OMPI_MCA_orte_tmpdir_base", options.session_folder);
    set("OMPI_MCA_btl_vader_backing_directory", options.memory_folder);
    set("OMPI_MCA_osc_sm_backing_directory", options.memory_folder);
    if (!options.interfaces.empty()) set("OMPI_MCA_btl_tcp_if_include", absl::StrJoin(options.interfaces, ","));
  }
  absl::StrAppend(&script, "cd ", ShellQuoted(options.rank_folder), " || exit 1\nexec setpriv --pdeathsig KILL -- ",
                  ShellQuoted(options.rank_binary));
  for (const std::string& argument : options.rank_arguments) absl::StrAppend(&script, " ", ShellQuoted(argument));
  if (options.tells_threads) absl::StrAppend(&script, " --threads=", options.threads_per_rank);
  return script + "\n";
}

namespace {

// The part of a path up to its last slash, with it.
std::string FolderOf(const std::string& path) { return path.substr(0, path.size() - FileName(path).size()); }

// Returns the arguments for Intel MPI's daemon on this node: those that name files or an interface of mpirun's node are
// replaced. They are pairs of an option and its value, then the program that the daemon starts with its arguments.
absl::StatusOr<std::vector<std::string>> IntelMpiArguments(const LaunchOptions& options,
                                                           const std::vector<std::string>& arguments) {
  const std::string folder = FolderOf(options.mpirun);
  std::vector<std::string> own;
  size_t i = 0;
  for (; i + 1 < arguments.size() && absl::StartsWith(arguments[i], "--"); i += 2) {
    const std::string& option = arguments[i];
    std::string value = arguments[i + 1];
    if (option == "--launcher-exec") value = options.remote_agent;
    if (option == "--base-path") value = folder;
    if (option == "--iface" && !options.interfaces.empty()) value = options.interfaces[0];
    own.push_back(option);
    own.push_back(std::move(value));
  }
  if (i == arguments.size() || FileName(arguments[i]) != kIntelProxy) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Intel MPI's daemon is to start ", i < arguments.size() ? arguments[i] : "nothing", ", which is not its ",
        kIntelProxy, ": the mpirun of this group is of another library or version"));
  }
  own.push_back(absl::StrCat(folder, kIntelProxy));
  own.insert(own.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
  return own;
}

}  // namespace

std::string NodeDaemonPath(const LaunchOptions& options) {
  return FolderOf(options.mpirun) + NodeDaemonName(options.flavour);
}

absl::StatusOr<LaunchCommand> MakeNodeDaemonCommand(const LaunchOptions& options,
                                                    const std::vector<std::string>& arguments) {
  LaunchCommand command;
  command.argv = {NodeDaemonPath(options)};
  command.environment = MakeEnvironment(options);
  if (options.flavour == MpiFlavour::kIntelMpi) {
    const absl::StatusOr<std::vector<std::string>> own = IntelMpiArguments(options, arguments);
    if (!own.ok()) return own.status();
    command.argv.insert(command.argv.end(), own->begin(), own->end());
    return command;
  }
  const auto is_of_node = [](absl::string_view name) {
    return std::find(std::begin(kNodeParameters), std::end(kNodeParameters), name) != std::end(kNodeParameters);
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool parameter = (arguments[i] == "-mca" || arguments[i] == "--mca") && i + 2 < arguments.size();
    if (parameter && is_of_node(arguments[i + 1])) {
      i += 2;
    } else {
      command.argv.push_back(arguments[i]);
    }
  }
  if (options.flavour != MpiFlavour::kOpenMpi) return command;
  Append({absl::string_view("--mca"), absl::string_view("orte_tmpdir_base"), absl::string_view(options.session_folder)},
         command.argv);
  if (options.interfaces.empty()) return command;
  Append({"--mca", "oob_tcp_if_include"}, command.argv);
  command.argv.push_back(absl::StrJoin(options.interfaces, ","));
  return command;
}

bool IsIpv6Text(absl::string_view address) { return absl::StrContains(address, ":"); }

std::string MpirunNameOf(const std::vector<LaunchHost>& hosts, size_t index) {
  if (!IsIpv6Text(hosts[index].address)) return hosts[index].address;
  // mpirun runs on the first node, and must know it for its own.
  if (index == 0) return "localhost";
  return absl::StrCat("240.", index >> 16 & 255, ".", index >> 8 & 255, ".", index & 255);
}

std::string AddressOfMpirunName(const std::vector<LaunchHost>& hosts, const std::string& name) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (MpirunNameOf(hosts, i) == name) return hosts[i].address;
  }
  return name;
}

std::string NodeDaemonName(MpiFlavour flavour) {
  switch (flavour) {
    case MpiFlavour::kOpenMpi:
      return "orted";
    case MpiFlavour::kMpich:
      return "hydra_pmi_proxy";
    case MpiFlavour::kIntelMpi:
      return "hydra_bstrap_proxy";
  }
  return "";
}

}  // namespace hooke
