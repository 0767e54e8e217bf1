#include "worker/daemon/node_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mpi_group/sockets/host_addresses.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

struct Subnet {
  uint32_t address = 0;
  uint32_t mask = 0;
};

absl::StatusOr<Subnet> ParseSubnet(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  in_addr address;
  int bits = 0;
  if (parts.size() != 2 || inet_pton(AF_INET, parts[0].c_str(), &address) != 1 || !absl::SimpleAtoi(parts[1], &bits) ||
      bits < 0 || bits > 32) {
    return absl::InvalidArgumentError(absl::StrCat("must be an IPv4 network, like 10.0.0.0/24, got ", text));
  }
  const uint32_t mask = bits == 0 ? 0 : ~uint32_t{0} << (32 - bits);
  return Subnet{ntohl(address.s_addr) & mask, mask};
}

bool IsLoopback(uint32_t address) { return address >> 24 == 127; }

std::string Known(absl::Span<const InterfaceAddress> own) {
  return absl::StrJoin(own, ", ", [](std::string* text, const InterfaceAddress& one) {
    absl::StrAppend(text, one.interface, " (", one.AddressText(), ")");
  });
}

void Take(const InterfaceAddress& one, NodeAddress& node) {
  if (node.address.empty()) node.address = one.AddressText();
  const bool known = std::find(node.interfaces.begin(), node.interfaces.end(), one.interface) != node.interfaces.end();
  if (!known) node.interfaces.push_back(one.interface);
  const bool taken = std::any_of(node.addresses.begin(), node.addresses.end(), [&one](const InterfaceAddress& other) {
    return other.interface == one.interface && other.address == one.address;
  });
  if (!taken) node.addresses.push_back(one);
}

}  // namespace

std::string InterfaceAddress::AddressText() const {
  const in_addr network = {htonl(address)};
  char text[INET_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET, &network, text, sizeof text) == nullptr ? "" : text;
}

absl::StatusOr<NodeAddress> ChooseNodeAddress(const NodeAddressWish& wish, absl::Span<const InterfaceAddress> own,
                                              uint32_t toward) {
  NodeAddress node;
  node.chosen = !wish.interfaces.empty() || !wish.subnets.empty();
  for (const std::string& name : wish.interfaces) {
    bool any = false;
    for (const InterfaceAddress& one : own) {
      if (one.interface != name) continue;
      Take(one, node);
      any = true;
    }
    if (!any) {
      return absl::NotFoundError(absl::StrCat("--interface ", name, ": no such interface is up with an IPv4 address; ",
                                              "there are ", Known(own)));
    }
  }
  for (const std::string& text : wish.subnets) {
    const absl::StatusOr<Subnet> subnet = ParseSubnet(text);
    if (!subnet.ok()) return absl::InvalidArgumentError(absl::StrCat("--subnet ", subnet.status().message()));
    bool any = false;
    for (const InterfaceAddress& one : own) {
      if ((one.address & subnet->mask) != subnet->address) continue;
      Take(one, node);
      any = true;
    }
    if (!any) {
      return absl::NotFoundError(
          absl::StrCat("--subnet ", text, ": no interface has an address in it; there are ", Known(own)));
    }
  }
  if (node.chosen || toward == 0 || IsLoopback(toward)) return node;
  const auto found = std::find_if(own.begin(), own.end(), [&](const auto& one) { return one.address == toward; });
  if (found != own.end()) Take(*found, node);
  return node;
}

absl::Status CheckSubnet(const std::string& text) { return ParseSubnet(text).status(); }

std::vector<InterfaceAddress> OwnIpv4Addresses() {
  std::vector<InterfaceAddress> own;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return own;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0 || entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family != AF_INET) continue;
    const auto& address = *reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    own.push_back({entry->ifa_name, ntohl(address.sin_addr.s_addr), MegabitsOf(entry->ifa_name)});
  }
  freeifaddrs(list);
  return own;
}

uint32_t AddressToward(const std::string& host_port) {
  const absl::StatusOr<HostPort> peer = ParseHostPort(host_port);
  if (!peer.ok()) return 0;
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(peer->host.c_str(), "7411", &hints, &found) != 0) return 0;
  uint32_t address = 0;
  // Connecting a datagram socket sends nothing, but gives it the address from which its packets would come.
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = {};
  socklen_t bytes = sizeof own;
  if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0) {
    address = ntohl(own.sin_addr.s_addr);
  }
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return address;
}

}  // namespace hooke
