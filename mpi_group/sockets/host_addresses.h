#ifndef HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_
#define HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_

// At which IP addresses a process can be reached, and which of them another tries first. Used by socket_mesh.cc.

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
  uint32_t megabits = 0;               // Of its network card a second; 0: unknown.
  std::array<uint8_t, 16> bytes = {};  // Network order; the first 4 of IPv4.

  friend bool operator==(const HostAddress& a, const HostAddress& b) {
    return a.family == b.family && a.bytes == b.bytes;
  }
};

// Of all network interfaces that are up, without those that only this machine sees: loopback and link-local ones.
std::vector<HostAddress> OwnAddresses();
HostAddress LoopbackAddress();

// The addresses of a peer, first those that are likely good and fast: in a network that both are in, of a faster card,
// as the peer lists them. Last those that this host has too, as a bridge for containers has on every host.
std::vector<HostAddress> InOrderOfTrial(absl::Span<const HostAddress> own, absl::Span<const HostAddress> peers);

// "10.0.0.1"
std::string TextOf(const HostAddress& address);

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;
};
SocketAddress ToSocketAddress(const HostAddress& address, uint16_t port);

// Whether this machine has an InfiniBand, RoCE or like device in use: MPI libraries reach the other nodes through it,
// past TCP. `folder` stands for the kernel's list of such devices.
bool HasRdmaDevice(const std::string& folder = "/sys/class/infiniband");

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_
