#include "worker/daemon/node_address.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t Ip(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return a << 24 | b << 16 | c << 8 | d; }

const std::vector<InterfaceAddress> kOwn = {{"lo", Ip(127, 0, 0, 1)},
                                            {"docker0", Ip(172, 17, 0, 1)},
                                            {"eth0", Ip(10, 0, 0, 5)},
                                            {"eth1", Ip(10, 0, 1, 5)},
                                            {"eth2", Ip(10, 0, 1, 6)}};

std::string Text(const absl::StatusOr<NodeAddress>& node) {
  if (!node.ok()) return std::string(node.status().message());
  return node->address + " " + absl::StrJoin(node->interfaces, ",") + (node->chosen ? " chosen" : "");
}

// Without a wish, the node's address is the one by which it reaches the coordinator, with that interface.
TEST(NodeAddressTest, TowardTheCoordinator) {
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, Ip(10, 0, 1, 5))), "10.0.1.5 eth1");
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, Ip(127, 0, 0, 1))), " ");
  EXPECT_EQ(Text(ChooseNodeAddress({}, kOwn, 0)), " ");
}

// Several interfaces and subnets may be given. The first one's address is the node's.
TEST(NodeAddressTest, ChosenByAPerson) {
  EXPECT_EQ(Text(ChooseNodeAddress({{"eth1", "eth0"}, {}}, kOwn, Ip(10, 0, 0, 5))), "10.0.1.5 eth1,eth0 chosen");
  EXPECT_EQ(Text(ChooseNodeAddress({{}, {"10.0.1.0/24"}}, kOwn, 0)), "10.0.1.5 eth1,eth2 chosen");
  EXPECT_EQ(Text(ChooseNodeAddress({{"eth0"}, {"10.0.0.0/8"}}, kOwn, 0)), "10.0.0.5 eth0,eth1,eth2 chosen");
  EXPECT_EQ(Text(ChooseNodeAddress({{}, {"10.0.1.6/32"}}, kOwn, 0)), "10.0.1.6 eth2 chosen");
}

// The ranks get all addresses of a chosen interface, but of a subnet only those in it; each once.
TEST(NodeAddressTest, AddressesForTheRanks) {
  std::vector<InterfaceAddress> own = kOwn;
  own.push_back({"eth0", Ip(10, 0, 2, 5), 25000});
  const auto texts = [&own](const NodeAddressWish& wish, uint32_t toward) {
    const absl::StatusOr<NodeAddress> node = ChooseNodeAddress(wish, own, toward);
    return absl::StrJoin(node->addresses, ",", [](std::string* text, const InterfaceAddress& one) {
      absl::StrAppend(text, one.interface, "=", one.AddressText(), "/", one.megabits);
    });
  };
  EXPECT_EQ(texts({{"eth0"}, {}}, 0), "eth0=10.0.0.5/0,eth0=10.0.2.5/25000");
  EXPECT_EQ(texts({{}, {"10.0.2.0/24"}}, 0), "eth0=10.0.2.5/25000");
  EXPECT_EQ(texts({{"eth1"}, {"10.0.1.0/24"}}, 0), "eth1=10.0.1.5/0,eth2=10.0.1.6/0");
  EXPECT_EQ(texts({}, Ip(10, 0, 1, 5)), "eth1=10.0.1.5/0");
}

// If no address fits a wish, the error lists the machine's addresses.
TEST(NodeAddressTest, NothingFits) {
  EXPECT_THAT(Text(ChooseNodeAddress({{"ib0"}, {}}, kOwn, 0)),
              HasSubstr("--interface ib0: no such interface is up with an IPv4 address; there are lo (127.0.0.1), "));
  EXPECT_THAT(Text(ChooseNodeAddress({{}, {"192.168.0.0/16"}}, kOwn, 0)),
              HasSubstr("--subnet 192.168.0.0/16: no interface has an address in it; there are "));
  for (const char* wrong : {"10.0.0.0", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "eth0/8", ""}) {
    EXPECT_FALSE(CheckSubnet(wrong).ok()) << wrong;
  }
}

// On this machine, packets to a loopback address come from a loopback address.
TEST(NodeAddressTest, OfThisMachine) {
  EXPECT_EQ(AddressToward("127.0.0.1:7411"), Ip(127, 0, 0, 1));
  EXPECT_EQ(AddressToward("no address"), 0u);
  bool loopback = false;
  for (const InterfaceAddress& one : OwnIpv4Addresses()) loopback = loopback || one.address == Ip(127, 0, 0, 1);
  EXPECT_TRUE(loopback);
}

}  // namespace
}  // namespace hooke
