#ifndef HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_
#define HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_

// The IP addresses at which a process can be reached, and the order in which another process tries them.

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hooke {

struct HostAddress {
  uint8_t family = 0;  // 4 or 6.
  uint8_t prefix_bits = 0;
  uint32_t megabits = 0;               // Speed of its network card in Mbit/s; 0: unknown.
  std::array<uint8_t, 16> bytes = {};  // In network order; IPv4 uses the first 4.

  friend bool operator==(const HostAddress& a, const HostAddress& b) {
    return a.family == b.family && a.bytes == b.bytes;
  }
};

// Returns the addresses of all network interfaces that are up, without loopback and IPv6 link-local addresses.
std::vector<HostAddress> OwnAddresses();
HostAddress LoopbackAddress();

// Orders a peer's addresses. Addresses in a network that this host is in too come first; among equals faster cards come
// first. Addresses that this host has as well come last, because they may lead to another host than the peer. A
// container bridge, for example, has the same address on every host. Otherwise the peer's order stays.
std::vector<HostAddress> InOrderOfTrial(absl::Span<const HostAddress> own, absl::Span<const HostAddress> peers);

// "10.0.0.1"
std::string TextOf(const HostAddress& address);

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;
};
SocketAddress ToSocketAddress(const HostAddress& address, uint16_t port);

// True if this machine has an active RDMA device (InfiniBand, RoCE and the like): MPI libraries use it to reach other
// nodes, bypassing TCP. `folder` is the kernel's list of such devices.
bool HasRdmaDevice(const std::string& folder = "/sys/class/infiniband");

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_
