#include "client/local_cluster/local_cluster.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "files/whole_file.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr char kAnyPort[] = "127.0.0.1:0";
// The port of the first server on a virtual host.
constexpr int kHostPort = 7411;

std::string ServerName(int index) { return absl::StrCat("server-", index); }

bool IsFree(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // Connections of the previous run in TIME_WAIT do not count, as gRPC's listener ignores them, too.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return free;
}

// Whether the port is free, or becomes so soon. It waits, because servers of a cluster that was killed a moment ago may
// still be ending.
bool IsFreeSoon(uint16_t port) {
  const absl::Time deadline = absl::Now() + absl::Seconds(2);
  while (!IsFree(port)) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return true;
}

// Returns the address for a server to listen on. The address of the previous run is used again, so that scripts and
// stored jobs find the server where it was.
absl::StatusOr<std::string> ListenAddress(const std::string& server, const fs::path& remembered) {
  std::ifstream in(remembered);
  std::string address;
  std::getline(in, address);
  absl::string_view port_text = address;
  int port = 0;
  if (!absl::ConsumePrefix(&port_text, "127.0.0.1:") || !absl::SimpleAtoi(port_text, &port) || port <= 0 ||
      port >= 65536) {
    if (address.empty()) return kAnyPort;
    return absl::FailedPreconditionError(absl::StrCat(
        "the jobs stored in this folder know ", server, " as ", address, " (", remembered.string(),
        "): an earlier run had --hosts; give it again, or start a new cluster in another folder with --state-dir"));
  }
  if (IsFreeSoon(static_cast<uint16_t>(port))) return address;
  return absl::FailedPreconditionError(
      absl::StrCat("port ", port, " is in use by another program, but ", server,
                   " needs it: the jobs stored in this folder know that server as ", address, " (", remembered.string(),
                   "); end the other program, or start a new cluster in another folder with --state-dir"));
}

// Returns the address of a server on a virtual host. Several servers of one host have ports in a row.
absl::StatusOr<std::string> ListenAddressOn(const VirtualHosts& hosts, int index, const fs::path& remembered) {
  const std::string address =
      absl::StrCat(hosts.Address((index - 1) % hosts.count()), ":", kHostPort + (index - 1) / hosts.count());
  std::ifstream in(remembered);
  std::string before;
  std::getline(in, before);
  if (before.empty() || before == address) return address;
  return absl::FailedPreconditionError(
      absl::StrCat("the jobs stored in this folder know ", ServerName(index), " as ", before, " (", remembered.string(),
                   "); with these --hosts and --servers it would be ", address,
                   "; give those of the earlier run, or start a new cluster in another folder with --state-dir"));
}

// Returns line `number` of the file, from 0, or "" if that line is not there or not complete.
std::string ReadLine(const std::string& path, int number) {
  std::ifstream in(path);
  std::string line;
  for (int i = 0; i <= number; ++i) {
    if (!std::getline(in, line) || in.eof()) return "";
  }
  return line;
}

}  // namespace

std::vector<std::string> ServerArguments(const DaemonPaths& paths, const std::string& listen,
                                         const std::string& coordinator) {
  std::vector<std::string> arguments = {paths.program,   "--listen",     listen,          "--state-dir",
                                        paths.state_dir, "--ready-file", paths.ready_file};
  if (!coordinator.empty()) arguments.insert(arguments.end(), {"--coordinator", coordinator});
  return arguments;
}

std::vector<std::string> WorkerArguments(const DaemonPaths& paths, const std::string& name, int slots,
                                         const std::string& coordinator) {
  // The machine's cores serve all workers and servers, so no rank gets cores of its own.
  return {paths.program,   "--coordinator", coordinator,         "--name", name,   "--site",
          "local",         "--slots",       absl::StrCat(slots), "--bind", "none", "--state-dir",
          paths.state_dir, "--ready-file",  paths.ready_file};
}

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(const LocalClusterOptions& options,
                                                                  Interrupts* interrupts) {
  for (const absl::string_view program : {"hooke-server", "hooke-worker"}) {
    const std::string path = fs::path(options.programs_dir) / std::string(program);
    if (access(path.c_str(), X_OK) == 0) continue;
    return absl::NotFoundError(absl::StrCat(path, ": no such program; ", program,
                                            " is looked for beside hooke (bazel build //:programs puts "
                                            "them into one folder), or where --programs-dir says"));
  }
  absl::StatusOr<ClusterFolder> folder = ClusterFolder::Own(options.state_dir, options.command);
  if (!folder.ok()) return folder.status();
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(options, *std::move(folder)));
  if (absl::Status status = cluster->StartAll(interrupts); !status.ok()) return status;
  return cluster;
}

absl::Status LocalCluster::StartAll(Interrupts* interrupts) {
  if (options_.hosts.has_value()) {
    absl::StatusOr<std::unique_ptr<VirtualHosts>> hosts = VirtualHosts::Make(*options_.hosts, folder_.path());
    if (!hosts.ok()) return hosts.status();
    hosts_ = *std::move(hosts);
  }
  // No server is started before every server has its port.
  std::vector<std::string> listen;
  for (int i = 1; i <= options_.servers; ++i) {
    absl::StatusOr<std::string> address = hosts_ != nullptr ? ListenAddressOn(*hosts_, i, RememberedAddress(i))
                                                            : ListenAddress(ServerName(i), RememberedAddress(i));
    if (!address.ok()) return address.status();
    listen.push_back(*std::move(address));
  }
  // The servers start one after another, because the others need the coordinator's address. The workers start together,
  // after the servers.
  for (int i = 1; i <= options_.servers; ++i) {
    if (absl::Status status = StartServer(i, listen[i - 1], interrupts); !status.ok()) return status;
  }
  for (int i = 1; i <= workers(); ++i) {
    if (absl::Status status = StartWorker(i); !status.ok()) return status;
  }
  for (Daemon& worker : workers_) {
    if (absl::StatusOr<std::string> ready = WaitUntilReady(worker, interrupts); !ready.ok()) return ready.status();
  }
  if (absl::Status status = WriteMetricsTargets(); !status.ok()) return status;
  return folder_.Announce(coordinator());
}

absl::Status LocalCluster::StartWorker(int index) {
  const std::string name = absl::StrCat("worker-", index);
  const DaemonPaths paths = PathsOf("hooke-worker", name);
  std::vector<std::string> arguments = WorkerArguments(paths, name, options_.slots, coordinator());
  if (allows_commands()) arguments.push_back("--allow-commands");
  absl::StatusOr<Daemon> worker = StartDaemon(name, std::move(arguments), paths, index - 1);
  if (!worker.ok()) return worker.status();
  workers_.push_back(*std::move(worker));
  return absl::OkStatus();
}

std::string LocalCluster::RememberedAddress(int index) const {
  return fs::path(folder_.path()) / absl::StrCat(ServerName(index), ".address");
}

std::string LocalCluster::PageHost(int place) const {
  return hosts_ != nullptr ? hosts_->Address(place % hosts_->count()) : "127.0.0.1";
}

absl::Status LocalCluster::StartServer(int index, const std::string& listen, Interrupts* interrupts) {
  const std::string name = ServerName(index);
  const DaemonPaths paths = PathsOf("hooke-server", name);
  const std::string coordinator_address = servers_.empty() ? "" : coordinator();
  std::vector<std::string> arguments = ServerArguments(paths, listen, coordinator_address);
  if (servers_.empty() && options_.dashboard) {
    const std::string& given = options_.dashboard_address;
    arguments.insert(arguments.end(), {"--dashboard", given.empty() ? absl::StrCat(PageHost(0), ":0") : given});
  }
  absl::StatusOr<Daemon> server = StartDaemon(name, std::move(arguments), paths, index - 1);
  if (!server.ok()) return server.status();
  absl::StatusOr<std::string> address = WaitUntilReady(*server, interrupts);
  if (!address.ok()) return address.status();
  if (absl::Status status = CheckDialAddress(*address); !status.ok()) {
    return absl::InternalError(absl::StrCat(paths.ready_file, ": ", status.message(), "; are hooke and ", paths.program,
                                            " of one version? `hooke doctor` compares them"));
  }
  std::ofstream(RememberedAddress(index)) << *address << "\n";
  server->address = *std::move(address);
  servers_.push_back(*std::move(server));
  return absl::OkStatus();
}

DaemonPaths LocalCluster::PathsOf(const std::string& program, const std::string& name) const {
  return {fs::path(options_.programs_dir) / program, fs::path(folder_.path()) / name,
          fs::path(folder_.path()) / absl::StrCat(name, ".ready")};
}

absl::StatusOr<LocalCluster::Daemon> LocalCluster::StartDaemon(const std::string& name,
                                                               std::vector<std::string> arguments,
                                                               const DaemonPaths& paths, int place) {
  std::error_code error;
  fs::create_directories(paths.state_dir, error);
  if (error)
    return absl::FailedPreconditionError(absl::StrCat(paths.state_dir, ": cannot be made: ", error.message(),
                                                      "; choose another folder with --state-dir"));
  // The file of the previous run would make the daemon look ready.
  fs::remove(paths.ready_file, error);
  ChildOptions options;
  options.arguments = std::move(arguments);
  if (!options_.token_file.empty())
    options.arguments.insert(options.arguments.end(), {"--token-file", options_.token_file});
  if (options_.metrics) {
    options.arguments.insert(options.arguments.end(), {"--metrics", absl::StrCat(PageHost(place), ":0")});
  }
  if (hosts_ != nullptr) options.arguments = hosts_->Inside(place % hosts_->count(), options.arguments);
  options.log_path = fs::path(folder_.path()) / "logs" / absl::StrCat(name, ".log");
  absl::StatusOr<Child> child = Child::Start(options);
  if (!child.ok()) return child.status();
  return Daemon{name, "", "", "", options.log_path, paths.ready_file, *std::move(child)};
}

absl::StatusOr<std::string> LocalCluster::WaitUntilReady(Daemon& daemon, Interrupts* interrupts) const {
  const absl::Time deadline = absl::Now() + options_.start_timeout;
  while (true) {
    std::string ready = ReadLine(daemon.ready_file, 0);
    if (!ready.empty()) {
      for (int line = 1; line <= 2; ++line) {
        const std::string text = ReadLine(daemon.ready_file, line);
        absl::string_view address = text;
        if (absl::ConsumePrefix(&address, "metrics ")) daemon.metrics = std::string(address);
        if (absl::ConsumePrefix(&address, "dashboard ")) daemon.dashboard = std::string(address);
      }
      return ready;
    }
    if (const std::optional<std::string>& ended = daemon.child.Ended(); ended.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(daemon.name, " ended at its start (", *ended, "); the end of ",
                                                        daemon.log_path, ":\n", EndOfLog(daemon.log_path)));
    }
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(daemon.name, " is not ready after ",
                                                      absl::FormatDuration(options_.start_timeout), "; the end of ",
                                                      daemon.log_path, ":\n", EndOfLog(daemon.log_path)));
    }
    if (interrupts == nullptr) {
      absl::SleepFor(absl::Milliseconds(10));
    } else if (interrupts->WaitFor(absl::Milliseconds(10)).has_value()) {
      return absl::CancelledError("interrupted while the cluster was starting; what had been started is stopped");
    }
  }
}

LocalCluster::~LocalCluster() { Stop(nullptr); }

std::vector<std::string> LocalCluster::server_addresses() const {
  std::vector<std::string> addresses;
  for (const Daemon& server : servers_) addresses.push_back(server.address);
  return addresses;
}

std::vector<std::pair<std::string, std::string>> LocalCluster::metrics_addresses() const {
  std::vector<std::pair<std::string, std::string>> addresses;
  for (const std::vector<Daemon>* daemons : {&servers_, &workers_}) {
    for (const Daemon& daemon : *daemons) {
      if (!daemon.metrics.empty()) addresses.emplace_back(daemon.name, daemon.metrics);
    }
  }
  return addresses;
}

std::string LocalCluster::metrics_targets() const { return fs::path(folder_.path()) / "metrics.json"; }

absl::Status LocalCluster::WriteMetricsTargets() const {
  std::error_code error;
  // The addresses of an earlier run are wrong now.
  if (!options_.metrics) {
    fs::remove(metrics_targets(), error);
    return absl::OkStatus();
  }
  // Neither names nor addresses have characters that JSON would quote.
  std::vector<std::string> targets;
  for (const auto& [name, address] : metrics_addresses()) {
    targets.push_back(absl::StrCat("{\"targets\": [\"", address, "\"], \"labels\": {\"daemon\": \"", name, "\"}}"));
  }
  return WriteWholeFile(metrics_targets(), absl::StrCat("[", absl::StrJoin(targets, ",\n "), "]\n"));
}

std::vector<std::string> LocalCluster::NewlyEnded() {
  std::vector<std::string> texts;
  const auto tell = [&](Daemon& daemon, const std::string& who, absl::string_view consequence) {
    if (daemon.told || !daemon.child.Ended().has_value()) return;
    daemon.told = true;
    texts.push_back(
        absl::StrCat(who, " has ended: ", *daemon.child.Ended(), "; ", consequence, ". Its log: ", daemon.log_path));
  };
  for (Daemon& worker : workers_) tell(worker, worker.name, "its groups start again where slots are free");
  for (size_t i = 0; i < servers_.size(); ++i) {
    tell(servers_[i], absl::StrCat(servers_[i].name, " (", servers_[i].address, i == 0 ? ", the coordinator)" : ")"),
         i == 0 ? "the cluster cannot go on. Start `hooke up` again: jobs go on from the last snapshots"
                : "jobs with a part of their center there train on without exchanging. Stop and start `hooke up` "
                  "again: they go on from the "
                  "last snapshots");
  }
  return texts;
}

std::vector<std::string> LocalCluster::Stop(Interrupts* interrupts) {
  std::vector<std::string> killed;
  bool hurry = false;
  StopDaemons(workers_, interrupts, hurry, killed);
  StopDaemons(servers_, interrupts, hurry, killed);
  return killed;
}

void LocalCluster::StopDaemons(std::vector<Daemon>& daemons, Interrupts* interrupts, bool& hurry,
                               std::vector<std::string>& killed) {
  for (Daemon& daemon : daemons) daemon.child.Signal(SIGTERM);
  // Ctrl-C ends the cluster at once. A second signal tells a worker not to wait until its groups have left.
  for (Daemon& daemon : daemons) {
    if (!daemon.child.EndsWithin(absl::Milliseconds(50))) daemon.child.Signal(SIGTERM);
  }
  const absl::Time deadline = absl::Now() + options_.stop_grace;
  for (Daemon& daemon : daemons) {
    while (!hurry && absl::Now() < deadline && !daemon.child.EndsWithin(absl::Milliseconds(50))) {
      hurry = interrupts != nullptr && interrupts->WaitFor(absl::ZeroDuration()).has_value();
    }
    if (daemon.child.Ended().has_value()) continue;
    daemon.child.Signal(SIGKILL);
    killed.push_back(daemon.name);
    daemon.child.EndsWithin(absl::Seconds(5));
  }
}

}  // namespace hooke
