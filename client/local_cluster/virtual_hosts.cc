#include "client/local_cluster/virtual_hosts.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/process/child_process.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;

constexpr int kNetworks = 256;
constexpr absl::Duration kScriptTimeout = absl::Seconds(60);
// The kernel keeps so many bytes of a device's alias.
constexpr size_t kAliasBytesMax = 255;
// Not every PATH has the folders of ip and tc.
constexpr char kPath[] = "PATH=$PATH:/usr/sbin:/sbin\n";
// A link sends this many bytes at once after idle time. A larger burst would let small messages exceed the rate, and
// with a smaller one a busy machine does not reach it. The queue holds what a TCP connection has under way.
constexpr char kShape[] = " burst 128kb limit 16mb\n";

std::string Device(int network) { return absl::StrCat("hooke", network); }
// The name of the device's other end, which becomes a port of the bridge.
std::string Peer(int network) { return absl::StrCat(Device(network), "p"); }
std::string HostName(int network, int host) { return absl::StrCat("hooke-", network, "-", host + 1); }
std::string SwitchName(int network) { return absl::StrCat("hooke-", network, "-switch"); }
std::string HostAddress(int network, int host) { return absl::StrCat("198.18.", network, ".", host + 1); }

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string FirstLine(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The text by which a network's device names its owner.
std::string AliasOf(const std::string& folder) {
  return folder.size() <= kAliasBytesMax ? folder : folder.substr(folder.size() - kAliasBytesMax);
}

bool Exists(int network) { return fs::exists(fs::path("/sys/class/net") / Device(network)); }

// Returns the alias of a network's device; "" if there is none.
std::string OwnerOf(int network) { return FirstLine(fs::path("/sys/class/net") / Device(network) / "ifalias"); }

std::string LimitScript(const VirtualHostsOptions& options, int network, int host) {
  const std::string inside = absl::StrCat("tc -n ", HostName(network, host), " qdisc add dev eth0 ");
  std::string script;
  if (!options.rate.empty()) {
    const std::string shape = absl::StrCat("tbf rate ", options.rate, kShape);
    absl::StrAppend(&script, inside, "root handle 1: ", shape);
    absl::StrAppend(&script, "tc -n ", SwitchName(network), " qdisc add dev port", host + 1, " root ", shape);
  }
  if (options.delay > absl::ZeroDuration()) {
    absl::StrAppend(&script, inside, options.rate.empty() ? "root" : "parent 1:1", " netem delay ",
                    absl::ToInt64Microseconds(options.delay), "us limit 100000 || { echo 'a delay needs netem ",
                    "(CONFIG_NET_SCH_NETEM), which this kernel does not have'; exit 1; }\n");
  }
  return script;
}

absl::Status RunScript(const std::string& script, const std::string& folder, absl::string_view failure) {
  ChildOptions options;
  options.arguments = {"/bin/sh", "-c", script};
  options.log_path = fs::path(folder) / "logs" / "network.log";
  absl::StatusOr<Child> shell = Child::Start(options);
  if (!shell.ok()) return shell.status();
  if (shell->EndsWithin(kScriptTimeout) && shell->exit_code() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(failure, "; the end of ", options.log_path, ":\n", EndOfLog(options.log_path)));
}

// Takes network `network`. ALREADY_EXISTS: somebody has it.
absl::Status ClaimNetwork(int network, const std::string& folder) {
  absl::Status status = RunScript(ClaimNetworkScript(network, folder), folder, "no hosts can be made");
  if (!status.ok() && Exists(network)) return absl::AlreadyExistsError(status.message());
  return status;
}

// Takes the network that the folder had before, and removes what an earlier run has left of it.
absl::Status TakeNetworkAgain(int network, const std::string& folder) {
  const std::string owner = OwnerOf(network);
  // A device without an owner is left by a run that was killed while it took the network.
  if (!owner.empty() && owner != AliasOf(folder)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the network 198.18.", network, ".0/24, whose addresses the jobs stored in ", folder,
                     " know, now belongs to the cluster in ", owner,
                     "; stop that cluster, or start a new one in another folder with --state-dir"));
  }
  absl::Status status = RunScript(RemoveNetworkScript(network), folder, "hosts of an earlier run stay");
  if (!status.ok()) return status;
  return ClaimNetwork(network, folder);
}

// Takes a network that nobody has, and notes it in `remembered`.
absl::StatusOr<int> TakeNewNetwork(const std::string& folder, const fs::path& remembered) {
  for (int network = 0; network < kNetworks; ++network) {
    if (Exists(network)) continue;
    absl::Status status = ClaimNetwork(network, folder);
    if (absl::IsAlreadyExists(status)) continue;
    if (!status.ok()) return status;
    std::ofstream out(remembered);
    if (out << network << "\n" << std::flush) return network;
    RunScript(RemoveNetworkScript(network), folder, "hosts stay").IgnoreError();
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", remembered.string(), "; choose another folder with --state-dir"));
  }
  return absl::FailedPreconditionError(
      "all networks from 198.18.0.0/24 to 198.18.255.0/24 are taken on this machine; "
      "stop the `hooke up --hosts` that has one");
}

}  // namespace

std::string LinkRateFault(const std::string& rate) {
  for (const absl::string_view unit : {"kbit", "mbit", "gbit"}) {
    double number = 0;
    if (absl::EndsWith(rate, unit) && absl::ascii_isdigit(static_cast<unsigned char>(rate.front())) &&
        absl::SimpleAtod(rate.substr(0, rate.size() - unit.size()), &number) && number > 0) {
      return "";
    }
  }
  return absl::StrCat("'", rate, "' is no rate; write a number with kbit, mbit or gbit, like 100mbit");
}

std::string ClaimNetworkScript(int network, const std::string& owner) {
  return absl::StrCat("set -ex\n", kPath, "ip link add ", Device(network), " type veth peer name ", Peer(network),
                      "\nip link set ", Device(network), " alias ", Quoted(AliasOf(owner)), " || { ip link delete ",
                      Device(network), "; exit 1; }\n");
}

std::string MakeNetworkScript(const VirtualHostsOptions& options, int network) {
  const std::string at_switch = absl::StrCat("ip -n ", SwitchName(network), " link ");
  const std::string device = Device(network);
  std::string script =
      absl::StrCat("set -ex\n", kPath, "ip netns add ", SwitchName(network), "\n", at_switch,
                   "add bridge type bridge\n", at_switch, "set bridge up\n", "ip link set ", Peer(network), " netns ",
                   SwitchName(network), "\n", at_switch, "set ", Peer(network), " master bridge up\n");
  absl::StrAppend(&script, "ip address add 198.18.", network, ".254/24 dev ", device, "\n", "ip link set ", device,
                  " up\n");
  for (int host = 0; host < options.count; ++host) {
    const std::string name = HostName(network, host);
    const std::string port = absl::StrCat("port", host + 1);
    absl::StrAppend(&script, "ip netns add ", name, "\n", "ip -n ", name, " link set lo up\n");
    absl::StrAppend(&script, at_switch, "add ", port, " type veth peer name eth0 netns ", name, "\n", at_switch, "set ",
                    port, " master bridge up\n");
    absl::StrAppend(&script, "ip -n ", name, " link set eth0 up\n", "ip -n ", name, " address add ",
                    HostAddress(network, host), "/24 dev eth0\n", LimitScript(options, network, host));
  }
  return script;
}

std::string RemoveNetworkScript(int network) {
  // The device names the owner, so it goes last: a later run of this folder then finds what is left. The switch comes
  // after the hosts in the list, and takes the device along.
  return absl::StrCat(kPath, "for name in $(ip netns list | sed -n 's/^\\(hooke-", network,
                      "-[a-z0-9]*\\).*/\\1/p' | sort); do\n", "  ip netns pids \"$name\" | xargs -r kill -9\n",
                      "  ip netns delete \"$name\" || failed=1\n", "done\n", "[ -z \"$failed\" ] || exit 1\n",
                      "ip link delete ", Device(network), " 2>/dev/null || [ ! -e /sys/class/net/", Device(network),
                      " ]\n");
}

absl::StatusOr<std::unique_ptr<VirtualHosts>> VirtualHosts::Make(const VirtualHostsOptions& options,
                                                                 const std::string& folder) {
  if (geteuid() != 0) {
    return absl::FailedPreconditionError(
        "--hosts makes network namespaces, which needs root; run this command as root, or leave --hosts out");
  }
  std::error_code error;
  fs::create_directories(fs::path(folder) / "logs", error);
  const fs::path remembered = fs::path(folder) / "network";
  int network = -1;
  if (absl::SimpleAtoi(FirstLine(remembered), &network) && network >= 0 && network < kNetworks) {
    absl::Status status = TakeNetworkAgain(network, folder);
    if (!status.ok()) return status;
  } else {
    absl::StatusOr<int> taken = TakeNewNetwork(folder, remembered);
    if (!taken.ok()) return taken.status();
    network = *taken;
  }
  // From here on the destructor removes whatever has been made.
  std::unique_ptr<VirtualHosts> hosts(new VirtualHosts(options, folder, network));
  absl::Status status = RunScript(MakeNetworkScript(options, network), folder, "no hosts can be made");
  if (!status.ok()) return status;
  return hosts;
}

VirtualHosts::~VirtualHosts() {
  const absl::Status status = RunScript(RemoveNetworkScript(network_), folder_, "hosts stay");
  if (!status.ok()) std::cerr << status.message() << "\n";
}

std::string VirtualHosts::Address(int host) const { return HostAddress(network_, host); }
std::string VirtualHosts::Name(int host) const { return HostName(network_, host); }

std::vector<std::string> VirtualHosts::Inside(int host, const std::vector<std::string>& command) const {
  // Each host needs a host name of its own, because MPI libraries tell hosts apart by it.
  std::vector<std::string> inside = {"/bin/sh", "-c",
                                     absl::StrCat(kPath,
                                                  "exec ip netns exec \"$0\" unshare --uts "
                                                  "sh -c 'hostname \"$0\" && exec \"$@\"' \"$0\" \"$@\""),
                                     Name(host)};
  inside.insert(inside.end(), command.begin(), command.end());
  return inside;
}

}  // namespace hooke
