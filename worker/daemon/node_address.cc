#include "worker/daemon/node_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

struct Subnet {
  HostAddress network;
  size_t bits = 0;
};

absl::StatusOr<Subnet> ParseSubnet(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  const std::optional<HostAddress> network = HostAddressFrom(parts[0]);
  int bits = 0;
  if (parts.size() != 2 || !network.has_value() || !absl::SimpleAtoi(parts[1], &bits) || bits < 0 ||
      bits > (network->family == 4 ? 32 : 128)) {
    return absl::InvalidArgumentError(absl::StrCat("must be a network, like 10.0.0.0/24 or fd00::/64, got ", text));
  }
  return Subnet{*network, static_cast<size_t>(bits)};
}

std::string Known(absl::Span<const InterfaceAddress> own) {
  return absl::StrJoin(own, ", ", [](std::string* text, const InterfaceAddress& one) {
    absl::StrAppend(text, one.interface, " (", TextOf(one.address), ")");
  });
}

void Take(const InterfaceAddress& one, NodeAddress& node) {
  const std::string text = TextOf(one.address);
  if (node.address.empty() || (node.is_ipv6() && one.address.family == 4)) node.address = text;
  const bool known = std::find(node.interfaces.begin(), node.interfaces.end(), one.interface) != node.interfaces.end();
  if (!known) node.interfaces.push_back(one.interface);
  const bool taken = std::any_of(node.addresses.begin(), node.addresses.end(), [&one](const InterfaceAddress& other) {
    return other.interface == one.interface && other.address == one.address;
  });
  if (!taken) node.addresses.push_back(one);
}

HostAddress FromSocket(const sockaddr_storage& storage) {
  HostAddress address;
  address.family = storage.ss_family == AF_INET ? 4 : 6;
  if (address.family == 4) {
    std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, 4);
  } else {
    std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, 16);
  }
  return address;
}

// Connecting a datagram socket sends nothing, but gives it the address from which its packets would come.
std::optional<HostAddress> SourceToward(const addrinfo& peer) {
  const int fd = socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_storage own = {};
  socklen_t bytes = sizeof own;
  const bool known = connect(fd, peer.ai_addr, peer.ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0;
  close(fd);
  return known ? std::optional<HostAddress>(FromSocket(own)) : std::nullopt;
}

}  // namespace

absl::StatusOr<NodeAddress> ChooseNodeAddress(const NodeAddressWish& wish, absl::Span<const InterfaceAddress> own,
                                              const std::optional<HostAddress>& toward) {
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
      return absl::NotFoundError(
          absl::StrCat("--interface ", name, ": no such interface is up with an address; ", "there are ", Known(own)));
    }
  }
  for (const std::string& text : wish.subnets) {
    const absl::StatusOr<Subnet> subnet = ParseSubnet(text);
    if (!subnet.ok()) return absl::InvalidArgumentError(absl::StrCat("--subnet ", subnet.status().message()));
    bool any = false;
    for (const InterfaceAddress& one : own) {
      if (!SharePrefix(one.address, subnet->network, subnet->bits)) continue;
      Take(one, node);
      any = true;
    }
    if (!any) {
      return absl::NotFoundError(
          absl::StrCat("--subnet ", text, ": no interface has an address in it; there are ", Known(own)));
    }
  }
  // The interface of the address comes first.
  const auto owner = std::find_if(node.addresses.begin(), node.addresses.end(),
                                  [&node](const InterfaceAddress& one) { return TextOf(one.address) == node.address; });
  if (owner != node.addresses.end()) {
    const auto at = std::find(node.interfaces.begin(), node.interfaces.end(), owner->interface);
    std::rotate(node.interfaces.begin(), at, at + 1);
  }
  if (node.chosen || !toward.has_value()) return node;
  const auto found = std::find_if(own.begin(), own.end(), [&](const auto& one) { return one.address == *toward; });
  if (found != own.end() && !found->loopback) Take(*found, node);
  return node;
}

absl::Status CheckSubnet(const std::string& text) { return ParseSubnet(text).status(); }

std::optional<HostAddress> AddressToward(const std::string& host_port) {
  const absl::StatusOr<HostPort> peer = ParseHostPort(host_port);
  if (!peer.ok()) return std::nullopt;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(peer->host.c_str(), "7411", &hints, &list) != 0) return std::nullopt;
  std::optional<HostAddress> address;
  // More MPI libraries know IPv4, so an IPv6 address counts only if there is no other.
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* found = list; found != nullptr && !address.has_value(); found = found->ai_next) {
      if (found->ai_family == family) address = SourceToward(*found);
    }
  }
  freeaddrinfo(list);
  return address;
}

std::vector<std::string> UcxDevices(absl::Span<const std::string> interfaces, const std::string& folder) {
  std::vector<std::string> devices;
  for (const std::string& interface : interfaces) {
    const std::filesystem::path card = std::filesystem::path(folder) / interface;
    // A card of several ports may be one device. UCX counts its ports from 1, the kernel from 0.
    int port = 0;
    std::ifstream(card / "dev_port") >> port;
    std::vector<std::string> rdma;
    std::error_code error;
    for (std::filesystem::directory_iterator at(card / "device" / "infiniband", error), end; !error && at != end;
         at.increment(error)) {
      rdma.push_back(absl::StrCat(at->path().filename().string(), ":", port + 1));
    }
    std::sort(rdma.begin(), rdma.end());
    rdma.push_back(interface);
    for (std::string& device : rdma) {
      // Several interfaces may be of one port.
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(std::move(device));
    }
  }
  return devices;
}

absl::Status CheckMpiTakes(const NodeAddress& node, MpiFlavour flavour, absl::string_view ompi_info) {
  if (!node.is_ipv6()) return absl::OkStatus();
  const absl::string_view choose = "choose an IPv4 network by --interface or --subnet";
  if (flavour != MpiFlavour::kOpenMpi) {
    return absl::FailedPreconditionError(
        absl::StrCat(flavour == MpiFlavour::kMpich ? "MPICH" : "Intel MPI",
                     " starts ranks on other nodes over IPv4 only, and this node's address is ", node.address,
                     ": use a build of Hooke for Open MPI, or ", choose));
  }
  if (absl::StrContains(ompi_info, "options:ipv6:yes")) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this Open MPI was built without IPv6 (ompi_info), and this node's ", "address is ", node.address,
                   ": install one with it, or ", choose));
}

}  // namespace hooke
