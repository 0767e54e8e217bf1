#include "mpi_group/sockets/host_addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// No card is as fast as this.
constexpr int64_t kMegabitsMax = 100'000'000;
// An older driver interface has 16 bits for the speed. All of them are set if it is unknown.
constexpr int64_t kUnknownMegabits = 65535;

uint8_t OneBits(absl::Span<const uint8_t> mask) {
  int bits = 0;
  for (uint8_t byte : mask) bits += __builtin_popcount(byte);
  return static_cast<uint8_t>(bits);
}

std::optional<HostAddress> AddressOf(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr) return std::nullopt;
  HostAddress address;
  std::array<uint8_t, 16> mask = {};
  if (entry.ifa_addr->sa_family == AF_INET) {
    address.family = 4;
    std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr, 4);
    std::memcpy(mask.data(), &reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask)->sin_addr, 4);
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    const in6_addr& bytes = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&bytes)) return std::nullopt;
    address.family = 6;
    std::memcpy(address.bytes.data(), &bytes, 16);
    std::memcpy(mask.data(), &reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask)->sin6_addr, 16);
  } else {
    return std::nullopt;
  }
  address.prefix_bits = OneBits(mask);
  address.megabits = MegabitsOf(entry.ifa_name);
  return address;
}

bool SameNetwork(const HostAddress& a, const HostAddress& b) {
  return a.prefix_bits == b.prefix_bits && SharePrefix(a, b, a.prefix_bits);
}

// True for an address whose interface is in no network: /32, or /128 of IPv6.
bool StandsAlone(const HostAddress& address) { return address.prefix_bits >= (address.family == 4 ? 32 : 128); }

}  // namespace

uint32_t MegabitsFrom(absl::string_view text) {
  int64_t megabits = 0;
  const bool known =
      absl::SimpleAtoi(text, &megabits) && megabits > 0 && megabits <= kMegabitsMax && megabits != kUnknownMegabits;
  return known ? static_cast<uint32_t>(megabits) : 0;
}

uint32_t MegabitsOf(const std::string& interface) {
  const std::string folder = absl::StrCat("/sys/class/net/", interface, "/");
  // The kernel calls every tunnel to a program a card of 10 Mbit/s.
  if (std::error_code error; std::filesystem::exists(folder + "tun_flags", error)) return 0;
  std::string text;
  std::getline(std::ifstream(folder + "speed"), text);
  return MegabitsFrom(text);
}

std::vector<HostAddress> ChosenOf(absl::Span<const HostAddress> addresses, absl::Span<const std::string> chosen) {
  std::vector<HostAddress> found(addresses.begin(), addresses.end());
  if (chosen.empty()) return found;
  found.clear();
  for (const std::string& text : chosen) {
    const auto address = std::find_if(addresses.begin(), addresses.end(),
                                      [&text](const HostAddress& one) { return TextOf(one) == text; });
    if (address != addresses.end()) found.push_back(*address);
  }
  return found;
}

bool SharePrefix(const HostAddress& a, const HostAddress& b, size_t bits) {
  if (a.family != b.family) return false;
  bits = std::min<size_t>(bits, a.family == 4 ? 32 : 128);
  if (std::memcmp(a.bytes.data(), b.bytes.data(), bits / 8) != 0) return false;
  const int rest = 8 - static_cast<int>(bits % 8);
  return rest == 8 || a.bytes[bits / 8] >> rest == b.bytes[bits / 8] >> rest;
}

std::vector<InterfaceAddress> InterfaceAddresses() {
  std::vector<InterfaceAddress> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    const std::optional<HostAddress> address = AddressOf(*entry);
    if (!address.has_value()) continue;
    addresses.push_back({entry->ifa_name, *address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(list);
  return addresses;
}

std::vector<HostAddress> OwnAddresses() {
  std::vector<HostAddress> addresses;
  for (const InterfaceAddress& one : InterfaceAddresses()) {
    if (!one.loopback) addresses.push_back(one.address);
  }
  return addresses;
}

std::optional<HostAddress> HostAddressFrom(const std::string& text) {
  HostAddress address;
  for (const auto& [family, number] : {std::pair<int, uint8_t>(AF_INET, 4), {AF_INET6, 6}}) {
    address.family = number;
    if (inet_pton(family, text.c_str(), address.bytes.data()) == 1) return address;
  }
  return std::nullopt;
}

HostAddress LoopbackAddress() {
  HostAddress address;
  address.family = 4;
  address.prefix_bits = 8;
  address.bytes = {127, 0, 0, 1};
  return address;
}

std::vector<HostAddress> InOrderOfTrial(absl::Span<const HostAddress> own, absl::Span<const HostAddress> peers,
                                        size_t turn, bool chosen) {
  const auto shared = [own](const HostAddress& address) {
    const bool mine = std::find(own.begin(), own.end(), address) != own.end();
    return !mine && std::any_of(own.begin(), own.end(),
                                [&address](const HostAddress& other) { return SameNetwork(address, other); });
  };
  const auto rank = [own, &shared](const HostAddress& address) {
    const bool mine = std::find(own.begin(), own.end(), address) != own.end();
    const bool both_alone =
        StandsAlone(address) && std::any_of(own.begin(), own.end(), [&address](const HostAddress& other) {
          return other.family == address.family && StandsAlone(other);
        });
    return std::make_tuple(mine, !shared(address), !both_alone, -static_cast<int64_t>(address.megabits));
  };
  std::vector<HostAddress> ordered(peers.begin(), peers.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&rank](const HostAddress& a, const HostAddress& b) { return rank(a) < rank(b); });
  if (ordered.empty() || !shared(ordered[0]) || (ordered[0].megabits == 0 && !chosen)) return ordered;
  // One address of each equal network, then all others.
  std::vector<HostAddress> equal;
  std::vector<HostAddress> others;
  for (const HostAddress& address : ordered) {
    const bool another = std::none_of(equal.begin(), equal.end(),
                                      [&address](const HostAddress& other) { return SameNetwork(address, other); });
    const bool is_equal = address.family == ordered[0].family && rank(address) == rank(ordered[0]);
    (is_equal && another ? equal : others).push_back(address);
  }
  std::rotate(equal.begin(), equal.begin() + static_cast<int64_t>(turn % equal.size()), equal.end());
  equal.insert(equal.end(), others.begin(), others.end());
  return equal;
}

std::string TextOf(const HostAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const int family = address.family == 4 ? AF_INET : AF_INET6;
  return inet_ntop(family, address.bytes.data(), text, sizeof(text)) == nullptr ? "?" : text;
}

SocketAddress ToSocketAddress(const HostAddress& address, uint16_t port) {
  SocketAddress made;
  if (address.family == 4) {
    auto& ip4 = *reinterpret_cast<sockaddr_in*>(&made.storage);
    ip4.sin_family = AF_INET;
    ip4.sin_port = htons(port);
    std::memcpy(&ip4.sin_addr, address.bytes.data(), 4);
    made.bytes = sizeof(ip4);
  } else {
    auto& ip6 = *reinterpret_cast<sockaddr_in6*>(&made.storage);
    ip6.sin6_family = AF_INET6;
    ip6.sin6_port = htons(port);
    std::memcpy(&ip6.sin6_addr, address.bytes.data(), 16);
    made.bytes = sizeof(ip6);
  }
  return made;
}

bool HasRdmaDevice(const std::string& folder) {
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator(folder, error)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", error)) {
      std::string state;
      std::getline(std::ifstream(port.path() / "state"), state);
      if (absl::StrContains(state, "ACTIVE")) return true;
    }
  }
  return false;
}

}  // namespace hooke
