#ifndef HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_
#define HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_

// The address and the network interfaces by which the ranks of several nodes reach one another.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

// An IPv4 address of this machine.
struct InterfaceAddress {
  std::string interface;
  uint32_t address = 0;   // In the host's byte order.
  uint32_t megabits = 0;  // The interface's speed in Mbit/s; 0: unknown.

  std::string AddressText() const;  // "10.0.0.1"
};

struct NodeAddress {
  std::string address;                      // IPv4; empty: no other node reaches this one.
  std::vector<std::string> interfaces;      // Names of interfaces on this node, each once; empty: MPI chooses.
  std::vector<InterfaceAddress> addresses;  // Of these interfaces, for the ranks; that of `address` first.
  bool chosen = false;                      // Whether a person chose the interfaces.
};

struct NodeAddressWish {
  std::vector<std::string> interfaces;  // Names, as "eth0".
  std::vector<std::string> subnets;     // In CIDR notation, as "10.0.0.0/24".
};

// Chooses the node's address and its interfaces among the machine's `own` addresses. If the wish names interfaces or
// subnets, these are chosen in the order given, interfaces before subnets. The first one's address is the node's. An
// interface comes with all its addresses, a subnet with those in it.
// Without a wish, the address is `toward`, by which this node reaches its coordinator, with its interface. The address
// stays empty if `toward` is 0, a loopback address, or not in `own`. NOT_FOUND: the machine has no address that fits a
// wish. INVALID_ARGUMENT: a subnet is not in CIDR notation. Pure.
absl::StatusOr<NodeAddress> ChooseNodeAddress(const NodeAddressWish& wish, absl::Span<const InterfaceAddress> own,
                                              uint32_t toward);

// Returns OK if the text is an IPv4 network in CIDR notation.
absl::Status CheckSubnet(const std::string& text);

// Returns the IPv4 addresses of this machine's interfaces that are up.
std::vector<InterfaceAddress> OwnIpv4Addresses();

// Returns this machine's address from which packets to `host_port` are sent; 0 if there is none. The function sends no
// packet there, but may ask a name server.
uint32_t AddressToward(const std::string& host_port);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_
