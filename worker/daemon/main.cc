// hooke-worker: reads flags, builds the daemon, waits for SIGTERM or SIGINT.

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clocks/steady_time.h"
#include "files/whole_file.h"
#include "mpi_group/sockets/host_addresses.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "wire/cluster_token.h"
#include "wire/host_port.h"
#include "worker/cores/machine_cores.h"
#include "worker/daemon/flags.h"
#include "worker/daemon/node_address.h"
#include "worker/daemon/worker_daemon.h"
#include "worker/gpus/choose_gpus.h"
#include "worker/launch/find_program.h"
#include "worker/launch/launch_command.h"
#include "worker/launch/launcher_output.h"
#include "worker/launch/process.h"
#include "worker/slurm/slurm_site.h"

namespace hooke {
namespace {

constexpr absl::Duration kStopLimit = absl::Seconds(30);
constexpr absl::Duration kToolLimit = absl::Seconds(10);

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> Environment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  return environment;
}

bool HasNvidiaDriver() { return access("/dev/nvidiactl", F_OK) == 0; }

// Returns the GPUs that this process may use. A batch system or a container that gives only some says so in
// CUDA_VISIBLE_DEVICES.
std::vector<GpuName> FindGpus() {
  if (const char* visible = getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) return ParseGpuList(visible);
  if (!HasNvidiaDriver()) return {};
  return ParseNvidiaSmi(OutputOf({"nvidia-smi", "-L"}, Environment(), kToolLimit));
}

FlagDefaults Defaults() {
  FlagDefaults defaults;
  defaults.home = Variable("HOME");
  defaults.path = Variable("PATH");
  defaults.token_file = Variable("HOOKE_TOKEN_FILE");
  char host_name[HOST_NAME_MAX + 1] = {};
  gethostname(host_name, HOST_NAME_MAX);
  defaults.host_name = host_name;
  std::error_code error;
  defaults.own_folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  defaults.cores = ReadCores(OwnCpus());
  // Without its plug-ins for affinity or cgroups, Slurm lets all jobs of a node run on all its CPUs.
  if (!absl::SimpleAtoi(Variable("SLURM_CPUS_ON_NODE"), &defaults.batch_cpus)) defaults.batch_cpus = 0;
  defaults.find_gpus = FindGpus;
  return defaults;
}

// `metrics` is the address where they are served, or empty.
void WriteReadyFile(const std::string& path, const std::string& metrics, spdlog::logger& logger) {
  if (path.empty()) return;
  const std::string more = metrics.empty() ? "" : absl::StrCat("metrics ", metrics, "\n");
  const absl::Status written = WriteWholeFile(path, absl::StrCat(getpid(), "\n", more));
  if (!written.ok()) logger.error("--ready-file: {}", std::string(written.message()));
}

// Returns what Open MPI's own program tells of the library beside the mpirun of `launch`; "" if there is no such
// program or it hangs.
std::string OmpiInfo(const LaunchOptions& launch) {
  const size_t slash = launch.mpirun.rfind('/');
  const std::string folder = launch.mpirun.substr(0, slash == std::string::npos ? 0 : slash + 1);
  return OutputOf({folder + "ompi_info", "--parsable", "--config"}, launch.environment, kToolLimit);
}

// Calls `goes_on` about five times a second, and waits for a signal in between. Returns the signal, or 0 once `goes_on`
// has returned false.
int WaitForSignal(const sigset_t& signals, const std::function<bool()>& goes_on) {
  while (goes_on()) {
    const timespec tick = absl::ToTimespec(absl::Milliseconds(200));
    const int signal = sigtimedwait(&signals, nullptr, &tick);
    if (signal > 0) return signal;
  }
  return 0;
}

// Returns the address from which the coordinator is reached. A worker that starts with its machine waits here for the
// network and for names: without them it reaches no coordinator, and would know no address of its own for good.
// nullopt: a signal came, or the time of --exit-idle is over.
std::optional<HostAddress> WaitForNetwork(const WorkerFlags& flags, const sigset_t& signals, spdlog::logger& logger) {
  const std::string& coordinator = flags.worker.coordinator;
  std::optional<HostAddress> toward = AddressToward(coordinator);
  if (toward.has_value()) return toward;
  logger.warn("no network leads to --coordinator {}, or its name is not known: waiting", coordinator);
  const bool may_idle = flags.exit_idle == absl::ZeroDuration();
  const absl::Time limit = may_idle ? absl::InfiniteFuture() : SteadyTime() + flags.exit_idle;
  const int signal = WaitForSignal(
      signals, [&] { return !(toward = AddressToward(coordinator)).has_value() && SteadyTime() < limit; });
  if (signal > 0) {
    logger.info("{}: stopped", strsignal(signal));
  } else if (!toward.has_value()) {
    logger.error("no network has led to the coordinator for {} (--exit-idle)", absl::FormatDuration(flags.exit_idle));
  }
  return toward;
}

// Sets the address by which other nodes reach this one. Without hooke-remote there is none. `toward` is the address
// from which the coordinator is reached.
absl::Status SetNodeAddress(const WorkerFlags& flags, const HostAddress& toward, WorkerOptions& options,
                            spdlog::logger& logger) {
  absl::StatusOr<NodeAddress> node = ChooseNodeAddress(flags.node, InterfaceAddresses(), toward);
  if (!node.ok()) return node.status();
  options.node = *std::move(node);
  if (options.node.chosen) options.launch.ucx_devices = UcxDevices(options.node.interfaces, "/sys/class/net");
  const std::string ompi_info = options.node.is_ipv6() ? OmpiInfo(options.launch) : "";
  if (absl::Status takes = CheckMpiTakes(options.node, options.launch.flavour, ompi_info); !takes.ok()) {
    if (options.node.chosen) return takes;
    logger.warn("only groups whose ranks all run here: {}", std::string(takes.message()));
    options.node = {};
    return absl::OkStatus();
  }
  if (options.node.address.empty()) {
    logger.info(
        "only groups whose ranks all run here: --coordinator {} is reached from {}, which is no address of a network; "
        "--interface or --subnet names another address",
        options.coordinator, TextOf(toward));
  } else if (const std::string daemon = NodeDaemonPath(options.launch);
             absl::StrContains(daemon, '/') && !IsProgram(daemon)) {
    logger.warn(
        "only groups whose ranks all run here: there is no program {}, by which the MPI library starts ranks on other "
        "nodes; install the library whole, or name its mpirun by --mpirun",
        daemon);
    options.node.address.clear();
  } else if (!IsProgram(options.launch.remote_agent)) {
    logger.warn("only groups whose ranks all run here: there is no program {}", options.launch.remote_agent);
    options.node.address.clear();
  } else {
    logger.info("groups on several nodes reach this one at {}, interfaces {}", options.node.address,
                absl::StrJoin(options.node.interfaces, ","));
  }
  return absl::OkStatus();
}

// Prints, as lines of a key and a value, what the worker would use here.
int Describe(const WorkerFlags& flags) {
  const std::vector<InterfaceAddress> own = InterfaceAddresses();
  const absl::StatusOr<NodeAddress> node = ChooseNodeAddress(flags.node, own, AddressToward(flags.worker.coordinator));
  if (!node.ok()) {
    std::cerr << node.status().message() << std::endl;
    return 2;
  }
  const LaunchOptions& launch = flags.worker.launch;
  std::cout << "version " << HOOKE_VERSION << "\nslots " << flags.worker.slots << "\nthreads-per-rank "
            << launch.threads_per_rank << "\ngpus " << absl::StrJoin(flags.worker.gpus, ",") << "\nmpi "
            << NameOf(launch.flavour) << "\nmpirun " << launch.mpirun << "\nrank-binary " << launch.rank_binary
            << "\naddress " << node->address << "\ninterface " << absl::StrJoin(node->interfaces, ",") << "\n";
  for (const InterfaceAddress& one : own) {
    if (!one.loopback) std::cout << "own-address " << one.interface << " " << TextOf(one.address) << "\n";
  }
  std::cout << std::flush;
  return 0;
}

// Returns at a signal or when this worker was idle for long enough (true), or when the coordinator refuses it (false).
bool WaitForEnd(const sigset_t& signals, absl::Duration exit_idle, WorkerDaemon& daemon, spdlog::logger& logger) {
  const bool may_idle = exit_idle == absl::ZeroDuration();
  const int signal =
      WaitForSignal(signals, [&] { return daemon.Refusal().ok() && (may_idle || daemon.IdleFor() < exit_idle); });
  if (!daemon.Refusal().ok()) return false;
  if (signal > 0) {
    logger.info("{}: all groups end here", strsignal(signal));
  } else {
    logger.info("no group has run here for {} (--exit-idle)", absl::FormatDuration(exit_idle));
  }
  return true;
}

// Lets all groups leave, and stops them at a second signal.
void EndGroups(WorkerDaemon& daemon, const sigset_t& signals, spdlog::logger& logger) {
  daemon.LeaveAll();
  if (WaitForSignal(signals, [&daemon] { return daemon.AnyRuns(); }) > 0) {
    logger.info("a second signal: the groups that are left are stopped");
  }
  const absl::Status stopped = daemon.StopAll(kStopLimit);
  if (stopped.ok()) return;
  logger.error("groups that cannot be ended are left to the kernel: {}", std::string(stopped.message()));
  logger.flush();
  // Waiting for these groups may take for ever, so the process exits at once. Their processes die with it, except those
  // that the kernel cannot kill.
  _exit(1);
}

// Runs the agent of a site that gets its workers from Slurm, until a signal. Returns the exit status.
int RunSlurmSite(const WorkerFlags& flags, ClusterToken token, const sigset_t& signals,
                 const std::shared_ptr<spdlog::logger>& logger) {
  SlurmSiteOptions options;
  options.facts = {flags.worker.site,        flags.worker.coordinator,
                   flags.slurm.script,       flags.worker.state_dir + "/slurm",
                   flags.slurm.sbatch_flags, FlagsForBatchJobs(flags)};
  options.plan.ranks_max = flags.slurm.ranks_max;
  options.host = Defaults().host_name;
  if (flags.worker.allow_commands) {
    if (absl::Status allowed = CheckCommandsAllowed(flags.worker.coordinator, token); !allowed.ok()) {
      logger->error("{}", std::string(allowed.message()));
      return 2;
    }
  }
  if (const absl::StatusOr<HostPort> at = ParseHostPort(flags.worker.coordinator); at.ok() && at->IsLoopback()) {
    logger->warn("--coordinator {}: workers on other nodes do not reach it; name an address of this network",
                 flags.worker.coordinator);
  }
  options.token = std::move(token);
  options.environment = Environment();
  // The batch script looks for hooke-worker on the PATH, which Slurm hands on.
  for (std::string& variable : options.environment) {
    if (absl::StartsWith(variable, "PATH=")) variable.insert(strlen("PATH="), Defaults().own_folder + ":");
  }
  options.logger = logger;
  options.on_welcome = [path = flags.ready_file, logger] { WriteReadyFile(path, "", *logger); };
  absl::StatusOr<std::unique_ptr<SlurmSite>> site = SlurmSite::Start(std::move(options));
  if (!site.ok()) {
    logger->error("{}", std::string(site.status().message()));
    return absl::IsNotFound(site.status()) || absl::IsInvalidArgument(site.status()) ? 2 : 1;
  }
  const int signal = WaitForSignal(signals, [&site] { return (*site)->Refusal().ok(); });
  if (signal == 0) {
    logger->error("{}", std::string((*site)->Refusal().message()));
    return 1;
  }
  logger->info("{}: stopped; the batch jobs go on", strsignal(signal));
  return 0;
}

void WarnOfMissingGpus(const WorkerFlags& flags, spdlog::logger& logger) {
  if (flags.gpus == "auto" && flags.worker.gpus.empty() && HasNvidiaDriver() && !flags.slurm.enabled &&
      getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    logger.warn(
        "this node has NVIDIA's driver, but `nvidia-smi -L` named no GPU within {}: all ranks see what this "
        "worker sees; mend it, or name the GPUs by --gpus",
        absl::FormatDuration(kToolLimit));
  }
}

// Logs why there is no worker. Returns the exit status.
int Failed(const absl::Status& why, spdlog::logger& logger) {
  logger.error("{}", std::string(why.message()));
  return absl::IsInvalidArgument(why) ? 2 : 1;
}

// Finds out which MPI library mpirun belongs to, and its version. Logs a warning if mpirun does not say it.
// INVALID_ARGUMENT: the ranks do not run under that library.
absl::Status AskMpirun(WorkerOptions& options, spdlog::logger& logger) {
  const std::string& mpirun = options.launch.mpirun;
  const std::string said = OutputOf({mpirun, "--version"}, options.launch.environment, kToolLimit);
  const MpiFlavour built = BuiltFlavour();
  options.launch.flavour = FlavourOf(said).value_or(built);
  if (options.launch.flavour != built &&
      (built != MpiFlavour::kMpich || options.launch.flavour != MpiFlavour::kIntelMpi)) {
    return absl::InvalidArgumentError(absl::StrCat("hooke-rank is linked with ", NameOf(built), ", but ", mpirun,
                                                   " is of ", NameOf(options.launch.flavour), ": name the mpirun of ",
                                                   NameOf(built), " by --mpirun"));
  }
  options.mpi_version = MpiVersion(said);
  if (options.mpi_version.empty()) {
    logger.warn(
        "`{} --version` does not say which version it is: this worker takes no part in groups with workers whose does",
        mpirun);
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  // Signals are blocked before the first thread is made. All threads inherit the mask, so only this one takes the
  // signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  ParsedFlags parsed = ParseFlags(argc, argv, Defaults());
  if (!parsed.flags.has_value()) return parsed.exit_status;
  WorkerFlags& flags = *parsed.flags;
  if (flags.describe) return Describe(flags);
  auto logger = spdlog::stderr_color_mt("hooke-worker");
  logger->set_level(flags.log_level);
  logger->flush_on(spdlog::level::trace);
  logger->info("hooke-worker {}: {}", HOOKE_VERSION, ToString(flags));
  WarnOfMissingGpus(flags, *logger);

  std::error_code error;
  if (!flags.ready_file.empty()) std::filesystem::remove(flags.ready_file, error);
  WorkerOptions options = flags.worker;
  absl::StatusOr<ClusterToken> token = ReadClusterToken(flags.token_file);
  if (!token.ok()) {
    logger->error("{}", std::string(token.status().message()));
    return 1;
  }
  if (flags.slurm.enabled) return RunSlurmSite(flags, *std::move(token), signals, logger);
  options.token = *std::move(token);
  options.version = HOOKE_VERSION;
  options.launch.environment = Environment();
  options.launch.as_root = geteuid() == 0;
  options.logger = logger;
  // Set before the session starts, whose thread calls on_welcome.
  const auto metrics = std::make_shared<std::string>();
  options.on_metrics = [metrics, logger](const std::string& address) {
    *metrics = address;
    logger->info("metrics at http://{}/metrics", address);
  };
  options.on_welcome = [path = flags.ready_file, metrics, logger] { WriteReadyFile(path, *metrics, *logger); };
  if (absl::Status status = CheckWorkerOptions(options); !status.ok()) return Failed(status, *logger);
  const std::optional<HostAddress> toward = WaitForNetwork(flags, signals, *logger);
  if (!toward.has_value()) return 0;
  if (absl::Status status = AskMpirun(options, *logger); !status.ok()) return Failed(status, *logger);
  if (absl::Status status = SetNodeAddress(flags, *toward, options, *logger); !status.ok()) {
    logger->error("{}", std::string(status.message()));
    return 2;
  }
  absl::StatusOr<std::unique_ptr<WorkerDaemon>> daemon = WorkerDaemon::Start(std::move(options));
  if (!daemon.ok()) return Failed(daemon.status(), *logger);
  if (!WaitForEnd(signals, flags.exit_idle, **daemon, *logger)) {
    logger->error("{}", std::string((*daemon)->Refusal().message()));
    return 1;
  }
  EndGroups(**daemon, signals, *logger);
  daemon->reset();
  logger->info("stopped");
  return 0;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) { return hooke::Main(argc, argv); }
