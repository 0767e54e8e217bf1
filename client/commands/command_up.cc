#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/command.h"
#include "client/commands/left_run.h"
#include "client/local_cluster/local_cluster.h"
#include "client/process/interrupts.h"
#include "wire/address_fault.h"

namespace hooke {
namespace {

// Lines about the virtual hosts; empty if there are none.
std::string HostsText(const LocalCluster& cluster, const LocalClusterOptions& options) {
  if (cluster.hosts() == nullptr) return "";
  const VirtualHosts& hosts = *cluster.hosts();
  std::string text = absl::StrCat("hosts        ", hosts.Name(0), " (", hosts.Address(0), ")");
  if (hosts.count() > 1)
    absl::StrAppend(&text, " to ", hosts.Name(hosts.count() - 1), " (", hosts.Address(hosts.count() - 1), ")");
  absl::StrAppend(&text, "; links: ", options.hosts->rate.empty() ? "any rate" : options.hosts->rate);
  if (options.hosts->delay > absl::ZeroDuration())
    absl::StrAppend(&text, ", delay ", absl::FormatDuration(options.hosts->delay), " each way");
  absl::StrAppend(&text, "\n             inside one: ip netns exec ", hosts.Name(0), " bash\n");
  if (!cluster.allows_commands())
    absl::StrAppend(&text, "commands     refused; jobs that run a command need --token-file\n");
  return text;
}

// Lines about the pages of metrics; empty if there are none.
std::string MetricsText(const LocalCluster& cluster) {
  const auto addresses = cluster.metrics_addresses();
  if (addresses.empty()) return "";
  const auto write = [](std::string* out, const std::pair<std::string, std::string>& daemon) {
    absl::StrAppend(out, "http://", daemon.second, "/metrics (", daemon.first, ")");
  };
  return absl::StrCat("metrics      ", absl::StrJoin(addresses, "\n             ", write),
                      "\n             for Prometheus: ", cluster.metrics_targets(), "\n");
}

std::string DashboardText(const LocalCluster& cluster) {
  return cluster.dashboard().empty() ? "" : absl::StrCat("dashboard    http://", cluster.dashboard(), "/\n");
}

void PrintCluster(const Invocation& invocation, const LocalCluster& cluster, const LocalClusterOptions& options,
                  bool default_folder) {
  std::string flag = default_folder ? "" : absl::StrCat(" --coordinator ", cluster.coordinator());
  if (!invocation.token_file.empty()) absl::StrAppend(&flag, " --token-file ", options.token_file);
  *invocation.out << "coordinator  " << cluster.coordinator() << "\n"
                  << "servers      " << absl::StrJoin(cluster.server_addresses(), ", ") << "\n"
                  << "workers      " << cluster.workers() << " with " << options.slots
                  << (options.slots == 1 ? " slot" : " slots") << " each\n"
                  << HostsText(cluster, options) << MetricsText(cluster) << DashboardText(cluster) << "logs         "
                  << (std::filesystem::path(options.state_dir) / "logs").string() << "\n\n"
                  << "Train:   hooke submit deploy/jobs/fashion.yaml --watch" << flag << "\n"
                  << "Look:    hooke jobs" << flag << "\n"
                  << "Stop:    Ctrl-C here" << std::endl;
}

// Runs until an interrupt, or until the coordinator ends.
int RunUntilEnd(const Invocation& invocation, LocalCluster& cluster, Interrupts& interrupts) {
  int code = kSucceeded;
  while (true) {
    for (const std::string& text : cluster.NewlyEnded()) *invocation.err << "hooke: " << text << std::endl;
    if (!cluster.coordinator_runs()) {
      code = kFailed;
      break;
    }
    if (interrupts.WaitFor(absl::Milliseconds(200)).has_value()) break;
  }
  *invocation.out << "stopping the cluster" << std::endl;
  for (const std::string& name : cluster.Stop(&interrupts)) {
    *invocation.err << "hooke: " << name << " did not stop in time and was killed" << std::endl;
  }
  return code;
}

int Up(const Invocation& invocation, LocalClusterOptions options) {
  const bool default_folder = options.state_dir.empty();
  if (default_folder) options.state_dir = invocation.default_state_dir();
  if (options.state_dir.empty()) {
    return Report(
        invocation,
        absl::FailedPreconditionError("HOME is not set; say with --state-dir where the cluster keeps its files"),
        kUsage);
  }
  options.state_dir = std::filesystem::absolute(options.state_dir).lexically_normal();
  if (options.programs_dir.empty()) options.programs_dir = invocation.programs_dir;
  int code = kSucceeded;
  if (!TokenOrReport(invocation, code).has_value()) return code;
  options.token_file = invocation.absolute_token_file();
  Interrupts interrupts;
  const absl::StatusOr<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(options, &interrupts);
  if (!cluster.ok())
    return Report(invocation, cluster.status(), absl::IsCancelled(cluster.status()) ? kInterrupted : kFailed);
  PrintCluster(invocation, **cluster, options, default_folder);
  Invocation here = invocation;
  here.coordinator = (*cluster)->coordinator();
  CancelLeftRun(here, options.state_dir);
  return RunUntilEnd(invocation, **cluster, interrupts);
}

void AddHostFlags(Command& command, VirtualHostsOptions& hosts, const Argument& workers) {
  Argument count = command
                       .Add("--hosts", hosts.count,
                            "Run on so many hosts made of network namespaces, a worker on each; needs root. They end "
                            "with this command")
                       .Range(1, 64)
                       .Excludes(workers)
                       .Type("N")
                       .HideDefault();
  command.Add("--link", hosts.rate, "Limit each host's link to this rate, both ways, like 1gbit; default: not limited")
      .Check(LinkRateFault)
      .Needs(count)
      .Type("RATE");
  command.Add("--delay", hosts.delay, "Delay each packet between two hosts by this time, like 20ms; default: none")
      .Needs(count)
      .Type("DURATION");
}

}  // namespace

void AddUpCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("up", "Run a whole cluster on this machine until Ctrl-C");
  auto options = std::make_shared<LocalClusterOptions>();
  auto hosts = std::make_shared<VirtualHostsOptions>();
  command.Add("--servers", options->servers, "Servers that share the center; the first is the coordinator. Default: 2")
      .Range(1, 64)
      .Type("N");
  Argument workers = command.Add("--workers", options->workers, "Workers. Default: 2").Range(1, 64).Type("N");
  command.Add("--slots", options->slots, "Slots of each worker: room for so many ranks. Default: 2")
      .Range(1, 4096)
      .Type("N");
  AddHostFlags(command, *hosts, workers);
  command.Add(
      "--metrics", options->metrics,
      "Each daemon serves metrics for Prometheus over HTTP, on a free port. DIR/metrics.json names the ports for "
      "its file_sd_configs");
  options->dashboard = true;
  command
      .Add("--dashboard", options->dashboard_address,
           "Where the coordinator serves its web page. Default: a free port of 127.0.0.1, or of the first host with "
           "--hosts; it is printed")
      .Check(AddressFault)
      .Type("HOST:PORT");
  command
      .Add("--state-dir", options->state_dir,
           "Folder for jobs, snapshots and logs; one cluster at a time. Default: $HOME/.hooke/up, where other "
           "commands look for it")
      .Type("DIR");
  command
      .Add("--programs-dir", options->programs_dir, "Folder of hooke-server and hooke-worker. Default: that of hooke")
      .Type("DIR");
  AddTokenFlag(command, invocation);
  command.Footer(
      "Without --hosts everything listens on 127.0.0.1, on free ports; a second run from the same folder takes the "
      "same ports, so "
      "stored jobs go on; it does not start when another program has one of them.\n"
      "DIR/coordinator holds the coordinator's address from the moment on when the whole cluster is ready.\n"
      "Ctrl-C, SIGTERM and SIGHUP stop all of it; a second Ctrl-C at once. Nothing outlives this command.");
  command.Action([&command, &invocation, options, hosts] {
    if (command.Given("--hosts")) options->hosts = *hosts;
    return Up(invocation, *options);
  });
}

}  // namespace hooke
