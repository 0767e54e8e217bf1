#ifndef HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_
#define HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_

// The address and the network interfaces by which the ranks of several nodes reach one another.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

struct NodeAddress {
  std::string address;                  // IPv4; empty: no other node reaches this one.
  std::vector<std::string> interfaces;  // Their names on this node; empty: MPI chooses.
  bool chosen = false;                  // Whether a person chose them.
};

// An IPv4 address of this machine.
struct InterfaceAddress {
  std::string interface;
  uint32_t address = 0;  // In the host's byte order.
};

struct NodeAddressWish {
  std::vector<std::string> interfaces;  // Names, as "eth0".
  std::vector<std::string> subnets;     // In CIDR notation, as "10.0.0.0/24".
};

// Chooses among the machine's own addresses: those of the wish, the interfaces before the subnets, each in their order.
// The first one is the node's address. Without a wish it is `toward`, by which this node reaches its coordinator, with
// its interface; the address is empty if that is a loopback address or none. NOT_FOUND: nothing here fits a wish.
// INVALID_ARGUMENT: a subnet is none. Pure.
absl::StatusOr<NodeAddress> ChooseNodeAddress(const NodeAddressWish& wish, absl::Span<const InterfaceAddress> own,
                                              uint32_t toward);

// OK if the text is an IPv4 network in CIDR notation.
absl::Status CheckSubnet(const std::string& text);

// The IPv4 addresses of the interfaces that are up.
std::vector<InterfaceAddress> OwnIpv4Addresses();

// The own address from which packets to this HOST:PORT are sent; 0 if there is none. It sends nothing, but may ask a
// name server.
uint32_t AddressToward(const std::string& host_port);

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_NODE_ADDRESS_H_
