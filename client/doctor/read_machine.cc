#include "client/doctor/read_machine.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/doctor/proc_texts.h"
#include "client/doctor/program_checks.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileMax = 1 << 20;
constexpr size_t kEntriesMax = 1000;
constexpr absl::Duration kDescribeLimit = absl::Seconds(3);

// Returns at most kFileMax bytes of a file, or "" if it cannot be read.
std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kFileMax, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, in.gcount())));
  return text;
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Returns the folder, or if it does not exist, its nearest parent that does.
std::string NearestFolder(const std::string& folder) {
  fs::path path = folder;
  while (!path.empty() && path.has_relative_path() && !Exists(path.string())) path = path.parent_path();
  return path.string();
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

int OwnCpus(int online) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // A machine with more than CPU_SETSIZE CPUs does not fit the mask.
  return sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : online;
}

CgroupLimits ReadCgroup() {
  CgroupLimits limits;
  for (const CgroupFolder& folder : CgroupFolders(ReadText("/proc/self/cgroup"))) {
    if (!folder.old) {
      limits.cpu.push_back(ReadText(folder.path + "/cpu.max"));
      limits.memory.push_back({ReadText(folder.path + "/memory.max"), ReadText(folder.path + "/memory.current")});
      continue;
    }
    limits.cpu.push_back(
        absl::StrCat(ReadText(folder.path + "/cpu.cfs_quota_us"), " ", ReadText(folder.path + "/cpu.cfs_period_us")));
    limits.memory.push_back(
        {ReadText(folder.path + "/memory.limit_in_bytes"), ReadText(folder.path + "/memory.usage_in_bytes")});
  }
  return limits;
}

std::optional<bool> ClockSynchronised() {
  timex clock = {};
  const int state = ntp_adjtime(&clock);
  if (state < 0) return std::nullopt;
  return state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
}

// Returns whether a server could listen at the port of 127.0.0.1.
bool PortIsFree(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno != EADDRINUSE;
  close(fd);
  return free;
}

// Returns who listens at the port, like "hooke-server (pid 12)"; "" if no process that we may look at does.
std::string PortOwner(int port) {
  const std::string inode = ListeningInode(ReadText("/proc/net/tcp") + ReadText("/proc/net/tcp6"), port);
  if (inode.empty()) return "";
  const std::string wanted = absl::StrCat("socket:[", inode, "]");
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    const std::string pid = process.path().filename().string();
    if (!std::isdigit(static_cast<unsigned char>(pid[0]))) continue;
    std::error_code ignored;
    for (const fs::directory_entry& file : fs::directory_iterator(process.path() / "fd", ignored)) {
      if (fs::read_symlink(file.path(), ignored) != wanted) continue;
      std::string name = ReadText(process.path().string() + "/comm");
      name.resize(std::min(name.size(), name.find('\n')));
      return absl::StrCat(name, " (pid ", pid, ")");
    }
  }
  return "";
}

// Returns the paths of the Unix sockets of this user's processes, in all network namespaces that they have.
std::string UnixSockets() {
  std::vector<std::string> seen;
  std::string text;
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", error)) {
    std::error_code ignored;
    const std::string space = fs::read_symlink(process.path() / "ns/net", ignored).string();
    if (space.empty() || std::find(seen.begin(), seen.end(), space) != seen.end()) continue;
    seen.push_back(space);
    text += ReadText(process.path().string() + "/net/unix");
  }
  return text;
}

std::vector<SharedEntry> SharedEntries() {
  const std::string sockets = UnixSockets();
  std::vector<SharedEntry> entries;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator("/dev/shm", error)) {
    SharedEntry entry;
    entry.name = file.path().filename().string();
    struct stat facts = {};
    if (!absl::StartsWith(entry.name, "hooke-") || lstat(file.path().c_str(), &facts) != 0) continue;
    entry.ours = facts.st_uid == geteuid();
    entry.age = absl::Now() - absl::FromTimeT(facts.st_mtime);
    if (!sockets.empty()) entry.has_socket = absl::StrContains(sockets, file.path().string() + "/");
    // A plain file belongs to the process whose id its name has.
    if (S_ISREG(facts.st_mode)) entry.has_socket = Exists("/proc/" + PidOfSharedFile(entry.name));
    entries.push_back(std::move(entry));
    if (entries.size() == kEntriesMax) break;
  }
  return entries;
}

// The commands that run side by side, each with the place of its outcome.
struct Wanted {
  CommandOutcome MachineValues::*outcome;
  CommandToRun command;
};

std::vector<Wanted> CommandsFor(const ReadMachineOptions& options, const MachineValues& machine) {
  const WorkerDescription worker = ParseWorkerDescription(machine.worker_describe.output);
  const std::string mpirun = worker.mpirun.empty() ? "mpirun" : worker.mpirun;
  // Starts mpirun as a worker does: the ranks share the cores, and neither mpirun nor a rank looks for X displays.
  std::vector<std::string> start = {"env", "HWLOC_COMPONENTS=-gl,-opencl", mpirun};
  if (worker.mpi != "mpich") {
    start.insert(start.end(), {"--oversubscribe", "--bind-to", "none"});
    if (machine.is_root) start.push_back("--allow-run-as-root");
  }
  start.insert(start.end(), {"-n", "2", "/bin/echo", kStartedWord});
  const std::string rank = worker.rank_binary.empty() ? options.programs_dir + "/hooke-rank" : worker.rank_binary;
  const std::string probe = absl::StrCat(machine.state_probe_dir, "/.hooke-doctor.", getpid());
  const std::string write = absl::StrCat("dd if=/dev/zero of=\"$1\" bs=4096 oflag=dsync count=", kStateWrites,
                                         "; code=$?; rm -f \"$1\"; exit $code");
  return {
      {&MachineValues::mpirun_version, {{mpirun, "--version"}}},
      {&MachineValues::mpirun_start, {start, options.start_limit}},
      {&MachineValues::rank_libraries, {{"ldd", rank}}},
      {&MachineValues::python, {{"python3", "-c", kPythonScript}}},
      {&MachineValues::nvidia_smi,
       {{"nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"}}},
      {&MachineValues::shared_libraries, {{"sh", "-c", "PATH=$PATH:/sbin:/usr/sbin; exec ldconfig -p"}}},
      {&MachineValues::nvcc, {{"sh", "-c", "PATH=$PATH:/usr/local/cuda/bin; exec nvcc --version"}}},
      {&MachineValues::host_lookup, {{"getent", "ahosts", machine.host_name}}},
      {&MachineValues::shared_memory_space, {{"df", "-B1", "--output=size,avail", "/dev/shm"}, absl::Seconds(2)}},
      {&MachineValues::state_space, {{"df", "-B1", "--output=size,avail", machine.state_probe_dir}, absl::Seconds(2)}},
      {&MachineValues::state_writes, {{"sh", "-c", write, "sh", probe}, absl::Seconds(3)}},
  };
}

}  // namespace

MachineValues ReadMachine(const ReadMachineOptions& options) {
  MachineValues machine;
  machine.own_version = options.own_version;
  machine.programs_dir = options.programs_dir;
  machine.is_root = geteuid() == 0;
  for (const char* program : {"hooke-server", "hooke-worker", "hooke-rank", "hooke-remote"}) {
    if (!Exists(absl::StrCat(options.programs_dir, "/", program))) machine.missing_programs.push_back(program);
  }
  machine.host_name = HostName();
  machine.etc_hosts = ReadText("/etc/hosts");
  machine.online_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.own_cpus = OwnCpus(machine.online_cpus);
  machine.cgroup = ReadCgroup();
  machine.meminfo = ReadText("/proc/meminfo");
  machine.own_limits = ReadText("/proc/self/limits");
  machine.shared_entries = SharedEntries();
  machine.clock_synchronised = ClockSynchronised();
  machine.nvidia_device = Exists("/dev/nvidiactl");
  machine.port = options.port;
  machine.port_is_free = PortIsFree(options.port);
  if (!machine.port_is_free) machine.port_owner = PortOwner(options.port);
  machine.state_dir = options.state_dir;
  machine.state_probe_dir = NearestFolder(options.state_dir);
  // The worker says which mpirun the other commands are about.
  machine.worker_describe =
      RunCommands({{{options.programs_dir + "/hooke-worker", "--describe", "--coordinator", options.coordinator,
                     "--state-dir", "/nonexistent",
                     // The doctor asks nvidia-smi itself, and a slow one is no fault of the worker.
                     "--gpus", "none"},
                    kDescribeLimit}})[0];
  const std::vector<Wanted> wanted = CommandsFor(options, machine);
  std::vector<CommandToRun> commands;
  commands.reserve(wanted.size());
  for (const Wanted& one : wanted) commands.push_back(one.command);
  std::vector<CommandOutcome> outcomes = RunCommands(commands);
  for (size_t i = 0; i < wanted.size(); ++i) machine.*wanted[i].outcome = std::move(outcomes[i]);
  const std::string blas = BlasInLdd(machine.rank_libraries.output);
  std::error_code error;
  const fs::path real = fs::canonical(blas, error);
  machine.blas_path = blas.empty() || error ? blas : real.string();
  return machine;
}

}  // namespace hooke
