#include "worker/daemon/node_address.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

InterfaceAddress On(const std::string& interface, const std::string& address, bool loopback = false) {
  return {interface, *HostAddressFrom(address), loopback};
}

const std::vector<InterfaceAddress> kOwn = {
    On("lo", "127.0.0.1", true), On("docker0", "172.17.0.1"), On("eth0", "10.0.0.5"),    On("eth1", "10.0.1.5"),
    On("eth2", "10.0.1.6"),      On("lo", "::1", true),       On("eth0", "2001:db8::5"), On("eth3", "fd00:0:0:3::5")};

std::string Text(const absl::StatusOr<NodeAddress>& node) {
  if (!node.ok()) return std::string(node.status().message());
  return node->address + " " + absl::StrJoin(node->interfaces, ",") + (node->chosen ? " chosen" : "");
}

// Without a wish, the node's address is the one by which it reaches the coordinator, with that interface.
TEST(NodeAddressTest, TowardTheCoordinator) {
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, HostAddressFrom("10.0.1.5"))), "10.0.1.5 eth1");
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, HostAddressFrom("fd00:0:0:3::5"))), "fd00:0:0:3::5 eth3");
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, HostAddressFrom("127.0.0.1"))), " ");
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, HostAddressFrom("::1"))), " ");
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, HostAddressFrom("10.9.9.9"))), " ");
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, std::nullopt)), " ");
}

// Several interfaces and subnets may be given. The first IPv4 address is the node's, else the first one.
TEST(NodeAddressTest, ChosenByAPerson) {
  const auto chosen = [](const NodeAddressWish& wish) { return Text(ChooseNodeAddress(wish, kOwn, std::nullopt)); };
  EXPECT_EQ(Text(ChooseNodeAddress({{"eth1", "eth0"}, {}}, kOwn, HostAddressFrom("10.0.0.5"))),
            "10.0.1.5 eth1,eth0 chosen");
  EXPECT_EQ(chosen({{}, {"10.0.1.0/24"}}), "10.0.1.5 eth1,eth2 chosen");
  EXPECT_EQ(chosen({{"eth0"}, {"10.0.0.0/8"}}), "10.0.0.5 eth0,eth1,eth2 chosen");
  EXPECT_EQ(chosen({{}, {"10.0.1.6/32"}}), "10.0.1.6 eth2 chosen");
  EXPECT_EQ(chosen({{"eth3"}, {}}), "fd00:0:0:3::5 eth3 chosen");
  EXPECT_EQ(chosen({{"eth3", "eth1"}, {}}), "10.0.1.5 eth1,eth3 chosen");
  EXPECT_EQ(chosen({{}, {"2001:db8::/32", "fd00::/16"}}), "2001:db8::5 eth0,eth3 chosen");
}

// The ranks get all addresses of a chosen interface, but of a subnet only those in it; each once.
TEST(NodeAddressTest, AddressesForTheRanks) {
  const auto texts = [](const NodeAddressWish& wish, const std::optional<HostAddress>& toward) {
    const absl::StatusOr<NodeAddress> node = ChooseNodeAddress(wish, kOwn, toward);
    return absl::StrJoin(node->addresses, ",", [](std::string* text, const InterfaceAddress& one) {
      absl::StrAppend(text, one.interface, "=", TextOf(one.address));
    });
  };
  EXPECT_EQ(texts({{"eth0"}, {}}, std::nullopt), "eth0=10.0.0.5,eth0=2001:db8::5");
  EXPECT_EQ(texts({{}, {"2001:db8::/32"}}, std::nullopt), "eth0=2001:db8::5");
  EXPECT_EQ(texts({{"eth1"}, {"10.0.1.0/24"}}, std::nullopt), "eth1=10.0.1.5,eth2=10.0.1.6");
  EXPECT_EQ(texts({}, HostAddressFrom("10.0.1.5")), "eth1=10.0.1.5");
}

// If no address fits a wish, the error lists the machine's addresses.
TEST(NodeAddressTest, NothingFits) {
  EXPECT_THAT(Text(ChooseNodeAddress({{"ib0"}, {}}, kOwn, std::nullopt)),
              HasSubstr("--interface ib0: no such interface is up with an address; there are lo (127.0.0.1), "));
  EXPECT_THAT(Text(ChooseNodeAddress({{}, {"192.168.0.0/16"}}, kOwn, std::nullopt)),
              HasSubstr("--subnet 192.168.0.0/16: no interface has an address in it; there are "));
  for (const char* wrong :
       {"10.0.0.0", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "eth0/8", "", "fd00::/129", "fd00::"}) {
    EXPECT_FALSE(CheckSubnet(wrong).ok()) << wrong;
  }
}

// An IPv6 address needs an MPI library that starts ranks over IPv6. The error says what to do.
TEST(NodeAddressTest, WhichLibrariesTakeIpv6) {
  NodeAddress four;
  four.address = "10.0.0.1";
  NodeAddress six;
  six.address = "fd00::1";
  EXPECT_TRUE(CheckMpiTakes(four, MpiFlavour::kMpich, "").ok());
  EXPECT_TRUE(CheckMpiTakes(four, MpiFlavour::kOpenMpi, "").ok());
  EXPECT_TRUE(CheckMpiTakes(six, MpiFlavour::kOpenMpi, "a:b\noptions:ipv6:yes\n").ok());
  EXPECT_THAT(
      std::string(CheckMpiTakes(six, MpiFlavour::kOpenMpi, "options:ipv6:no\n").message()),
      HasSubstr("built without IPv6 (ompi_info), and this node's address is fd00::1: install one with it, or "));
  EXPECT_THAT(std::string(CheckMpiTakes(six, MpiFlavour::kMpich, "options:ipv6:yes\n").message()),
              HasSubstr("MPICH starts ranks on other nodes over IPv4 only, and this node's address is fd00::1: use "));
}

// On this machine, packets to a loopback address come from a loopback address.
TEST(NodeAddressTest, OfThisMachine) {
  EXPECT_EQ(AddressToward("127.0.0.1:7411"), HostAddressFrom("127.0.0.1"));
  EXPECT_EQ(AddressToward("no address"), std::nullopt);
  bool loopback = false;
  for (const InterfaceAddress& one : InterfaceAddresses()) {
    loopback = loopback || (one.loopback && TextOf(one.address) == "127.0.0.1");
  }
  EXPECT_TRUE(loopback);
}

// If the card of a chosen interface can do RDMA, UCX may use the card's RDMA port, too.
TEST(NodeAddressTest, DevicesOfUcx) {
  namespace fs = std::filesystem;
  const std::string folder = absl::StrCat(testing::TempDir(), "/net", getpid());
  fs::create_directories(folder + "/eth0");
  fs::create_directories(folder + "/ib0/device/infiniband/mlx5_0");
  fs::create_directories(folder + "/ib1/device/infiniband/mlx4_0");
  std::ofstream(folder + "/ib0/dev_port") << "0\n";
  std::ofstream(folder + "/ib1/dev_port") << "1\n";
  const auto devices = [&folder](const std::vector<std::string>& interfaces) {
    return absl::StrJoin(UcxDevices(interfaces, folder), ",");
  };
  EXPECT_EQ(devices({}), "");
  EXPECT_EQ(devices({"eth0", "gone"}), "eth0,gone");
  EXPECT_EQ(devices({"ib0", "eth0", "ib1"}), "mlx5_0:1,ib0,eth0,mlx4_0:2,ib1");
  fs::create_directories(folder + "/ib0.8001/device/infiniband/mlx5_0");
  EXPECT_EQ(devices({"ib0", "ib0.8001"}), "mlx5_0:1,ib0,ib0.8001");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace hooke
