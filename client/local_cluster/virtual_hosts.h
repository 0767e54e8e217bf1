#ifndef HOOKE_CLIENT_LOCAL_CLUSTER_VIRTUAL_HOSTS_H_
#define HOOKE_CLIENT_LOCAL_CLUSTER_VIRTUAL_HOSTS_H_

// Hosts on this machine: Linux network namespaces, joined by a bridge. Each has an address, a host name, and a link
// whose rate and delay can be limited. Needs root, and the programs ip, tc and unshare. Only one thread may use it.
//
// Network N has the addresses 198.18.N.0/24, of the range that RFC 2544 sets aside for measurements. This machine takes
// part in it with the device hookeN, whose link is not limited.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

struct VirtualHostsOptions {
  int count = 2;
  std::string rate;      // The rate of each link in both directions, like "1gbit"; empty: not limited.
  absl::Duration delay;  // The delay of each packet from one host to another; zero: none.
};

// Returns what is wrong with the rate of a link, or "" if it is a number with kbit, mbit or gbit.
std::string LinkRateFault(const std::string& rate);

// The shell script by which `owner`, a folder, takes network `network`. It fails if somebody has it.
std::string ClaimNetworkScript(int network, const std::string& owner);
// The shell script that makes the hosts of a network that has been taken.
std::string MakeNetworkScript(const VirtualHostsOptions& options, int network);
// The shell script that removes network `network`, and kills what still runs on its hosts.
std::string RemoveNetworkScript(int network);

class VirtualHosts {
 public:
  // Makes the hosts. `folder` owns them: what an earlier run of that folder has left behind is removed first. The
  // file `network` of the folder keeps the number, which stays the same in later runs; logs/network.log has the script.
  // FAILED_PRECONDITION: not root, or this machine cannot have such hosts.
  static absl::StatusOr<std::unique_ptr<VirtualHosts>> Make(const VirtualHostsOptions& options,
                                                            const std::string& folder);
  // Removes the hosts.
  ~VirtualHosts();

  int count() const { return options_.count; }
  // Hosts are counted from 0.
  std::string Address(int host) const;
  // The name of the host, which is also that of its namespace.
  std::string Name(int host) const;
  // Returns the command that runs `command` in a host. The process that it becomes is the command itself.
  std::vector<std::string> Inside(int host, const std::vector<std::string>& command) const;

 private:
  VirtualHosts(VirtualHostsOptions options, std::string folder, int network)
      : options_(std::move(options)), folder_(std::move(folder)), network_(network) {}

  const VirtualHostsOptions options_;
  const std::string folder_;
  const int network_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_LOCAL_CLUSTER_VIRTUAL_HOSTS_H_
