#ifndef HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_
#define HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_

// The IP addresses at which a process can be reached, and the order in which another process tries them.

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
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

struct InterfaceAddress {
  std::string interface;  // "eth0"
  HostAddress address;
  bool loopback = false;  // The interface reaches this host only.
};
// Returns this machine's addresses with the names of their interfaces, those of loopback, too.
std::vector<InterfaceAddress> InterfaceAddresses();

// Parses "10.0.0.1" or "fd00::1"; nullopt if the text is no address. Only family and bytes of the result are set. Pure.
std::optional<HostAddress> HostAddressFrom(const std::string& text);

// True if both are of one family and their first `bits` bits are equal. If an address has fewer bits, all of them are
// compared. Pure.
bool SharePrefix(const HostAddress& a, const HostAddress& b, size_t bits);

// Returns those of `addresses` that `chosen` names as text, in the order of `chosen`; all if `chosen` is empty. A name
// that is none of the addresses is ignored. Pure.
std::vector<HostAddress> ChosenOf(absl::Span<const HostAddress> addresses, absl::Span<const std::string> chosen);

// Reads a card's speed in Mbit/s as the kernel writes it in /sys/class/net/NAME/speed; 0: unknown. Drivers that do not
// know the speed, such as virtio, write -1, the same number without a sign, or 65535. Pure.
uint32_t MegabitsFrom(absl::string_view text);
// Returns the speed in Mbit/s of this machine's interface of that name; 0: unknown. A tunnel to a program (tun, tap)
// has none, whatever the kernel says.
uint32_t MegabitsOf(const std::string& interface);

// Orders a peer's addresses:
// 1. addresses in a network that this host is in too;
// 2. addresses without a network (/32, or /128 of IPv6), if this host has such an address too. Clouds give them to
//    virtual machines, and route between them;
// 3. all others but
// 4. addresses that this host has as well, because they may lead to another host than the peer. A container bridge, for
//    example, has the same address on every host.
// Among equals faster cards come first, and cards of unknown speed last. Otherwise the peer's order stays.
//
// Hosts may share several networks of kind 1. n of them are equal: their cards are the fastest ones, have the same
// speed, and their addresses are of one family. The network at `turn` modulo n comes first, and the others follow in a
// circle. Each rank of a host has its own turn, so the ranks use all n. If the speeds are not known, networks count as
// equal only if `chosen`: a person has named this host's addresses.
// Pure.
std::vector<HostAddress> InOrderOfTrial(absl::Span<const HostAddress> own, absl::Span<const HostAddress> peers,
                                        size_t turn = 0, bool chosen = false);

// "10.0.0.1"
std::string TextOf(const HostAddress& address);

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;
};
SocketAddress ToSocketAddress(const HostAddress& address, uint16_t port);

// True if this machine has an active RDMA device (InfiniBand, RoCE and the like): MPI libraries use it to reach other
// nodes, bypassing TCP. `folder` is the kernel's list of such devices.
bool HasRdmaDevice(const std::string& folder);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_SOCKETS_HOST_ADDRESSES_H_
