#include "mpi_group/sockets/host_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using testing::ElementsAre;

HostAddress Ip4(std::array<uint8_t, 4> bytes, uint8_t prefix_bits, uint32_t megabits = 0) {
  HostAddress address = {4, prefix_bits, megabits, {}};
  std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
  return address;
}

std::vector<std::string> Texts(const std::vector<HostAddress>& addresses) {
  std::vector<std::string> texts;
  texts.reserve(addresses.size());
  for (const HostAddress& address : addresses) texts.push_back(TextOf(address));
  return texts;
}

// The fastest card in a shared network comes first, addresses that this host has too come last.
TEST(HostAddressesTest, OrderOfTrial) {
  const std::vector<HostAddress> own = {Ip4({172, 17, 0, 1}, 16), Ip4({10, 0, 0, 1}, 24, 1000),
                                        Ip4({10, 0, 1, 1}, 25, 100000)};
  const std::vector<HostAddress> peers = {
      Ip4({172, 17, 0, 1}, 16),         Ip4({192, 168, 3, 4}, 24, 400000), Ip4({10, 0, 0, 2}, 24, 1000),
      Ip4({10, 0, 1, 127}, 25, 100000), Ip4({10, 0, 1, 128}, 25, 100000),
  };
  EXPECT_THAT(Texts(InOrderOfTrial(own, peers)),
              ElementsAre("10.0.1.127", "10.0.0.2", "192.168.3.4", "10.0.1.128", "172.17.0.1"));
  EXPECT_THAT(Texts(InOrderOfTrial({}, {})), ElementsAre());
}

// Addresses of both families convert to socket addresses and to text.
TEST(HostAddressesTest, BothFamilies) {
  HostAddress six;
  six.family = 6;
  six.bytes = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(TextOf(six), "2001:db8::1");
  EXPECT_EQ(ToSocketAddress(six, 80).storage.ss_family, AF_INET6);
  EXPECT_EQ(TextOf(LoopbackAddress()), "127.0.0.1");
  EXPECT_EQ(ToSocketAddress(LoopbackAddress(), 80).storage.ss_family, AF_INET);
  for (const HostAddress& address : OwnAddresses()) EXPECT_FALSE(address == LoopbackAddress()) << TextOf(address);
}

// An RDMA device counts only if one of its ports is active.
TEST(HostAddressesTest, RdmaDevice) {
  std::string folder = absl::StrCat(testing::TempDir(), "/rdma-XXXXXX");
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_FALSE(HasRdmaDevice(absl::StrCat(folder, "/none")));
  const std::string port = absl::StrCat(folder, "/mlx5_0/ports/1");
  std::filesystem::create_directories(port);
  std::ofstream(absl::StrCat(port, "/state")) << "1: DOWN\n";
  EXPECT_FALSE(HasRdmaDevice(folder));
  std::ofstream(absl::StrCat(port, "/state")) << "4: ACTIVE\n";
  EXPECT_TRUE(HasRdmaDevice(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hooke
