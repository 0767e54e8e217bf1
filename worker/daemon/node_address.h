#ifndef HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_
#define HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_

// The address and the network interfaces by which the ranks of several nodes reach one another.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpi_group/sockets/host_addresses.h"
#include "worker/launch/launch_command.h"

namespace hooke {

struct NodeAddress {
  std::string address;                      // IPv4 or IPv6; empty: no other node reaches this one.
  std::vector<std::string> interfaces;      // Names of interfaces on this node, each once; empty: MPI chooses.
  std::vector<InterfaceAddress> addresses;  // Of these interfaces, for the ranks, in the order of choice.
  bool chosen = false;                      // Whether a person chose the interfaces.

  bool is_ipv6() const { return IsIpv6Text(address); }
};

struct NodeAddressWish {
  std::vector<std::string> interfaces;  // Names, as "eth0".
  std::vector<std::string> subnets;     // In CIDR notation, as "10.0.0.0/24" or "fd00::/64".
};

// Chooses the node's address and its interfaces among the machine's `own` addresses. If the wish names interfaces or
// subnets, these are chosen in the order given, interfaces before subnets. An interface comes with all its addresses, a
// subnet with those in it. The first IPv4 address is the node's, or without one, the first IPv6 address. The interface
// of this address then comes first in `interfaces`. Without a wish, the address is `toward`, by which this node reaches
// its coordinator, with its interface. The address stays empty if `toward` is nullopt, on a loopback interface, or not
// in `own`. NOT_FOUND: the machine has no address that fits a wish. INVALID_ARGUMENT: a subnet is not in CIDR notation.
// Pure.
absl::StatusOr<NodeAddress> ChooseNodeAddress(const NodeAddressWish& wish, absl::Span<const InterfaceAddress> own,
                                              const std::optional<HostAddress>& toward);

// Returns OK if the text is a network in CIDR notation.
absl::Status CheckSubnet(const std::string& text);

// Returns this machine's address from which packets to `host_port` are sent; nullopt if there is none. The function
// sends no packet there, but may ask a name server.
std::optional<HostAddress> AddressToward(const std::string& host_port);

// Returns UCX's names of the devices that send through these interfaces, each once: the RDMA ports of an interface's
// card, as "mlx5_0:1", and then the interface itself, for messages by TCP. An interface that is made of others, such as
// a bond or a VLAN, has no card of its own. `folder` is where the kernel describes interfaces, /sys/class/net.
std::vector<std::string> UcxDevices(absl::Span<const std::string> interfaces, const std::string& folder);

// Returns OK if the MPI library can start ranks on a node of this address. FAILED_PRECONDITION: the address is IPv6,
// and the library cannot. `ompi_info` is what `ompi_info --parsable` of Open MPI prints; it counts only for an IPv6
// address. Pure.
absl::Status CheckMpiTakes(const NodeAddress& node, MpiFlavour flavour, absl::string_view ompi_info);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_
