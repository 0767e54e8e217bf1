#include "mpi_group/sockets/host_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
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

// Each row: a machine's addresses, a peer's, and the order in which the machine tries them.
TEST(HostAddressesTest, OrderOfTrialByRow) {
  const HostAddress bridge = Ip4({172, 17, 0, 1}, 16, 10000);
  struct Row {
    const char* name;
    std::vector<HostAddress> own, peers;
    std::vector<std::string> order;
  };
  const std::vector<Row> rows = {
      {"clouds give /32 addresses: they come before a private network that the other machine is not in",
       {Ip4({10, 128, 0, 2}, 32), bridge},
       {Ip4({192, 168, 9, 1}, 24, 10000), bridge, Ip4({10, 128, 0, 3}, 32)},
       {"10.128.0.3", "192.168.9.1", "172.17.0.1"}},
      {"a tunnel's /32 address comes after the network that both are in, even if the card's speed is unknown",
       {Ip4({10, 244, 1, 1}, 32, 10000), Ip4({10, 0, 0, 1}, 24)},
       {Ip4({10, 244, 2, 1}, 32, 10000), Ip4({10, 0, 0, 2}, 24)},
       {"10.0.0.2", "10.244.2.1"}},
      {"only the peer's address is a /32",
       {Ip4({10, 128, 0, 2}, 24)},
       {Ip4({10, 128, 1, 3}, 32), Ip4({10, 128, 2, 3}, 24, 1000)},
       {"10.128.2.3", "10.128.1.3"}},
      {"a service's address that every machine has comes last, though it is a /32 too",
       {Ip4({10, 128, 0, 2}, 32), Ip4({10, 96, 0, 1}, 32)},
       {Ip4({10, 96, 0, 1}, 32), Ip4({10, 128, 0, 3}, 32)},
       {"10.128.0.3", "10.96.0.1"}},
      {"a card of unknown speed is not preferred",
       {Ip4({10, 0, 0, 1}, 24), Ip4({10, 0, 1, 1}, 24, 1000)},
       {Ip4({10, 0, 0, 2}, 24), Ip4({10, 0, 1, 2}, 24, 1000)},
       {"10.0.1.2", "10.0.0.2"}},
      {"if no speed is known, the peer's order stays",
       {Ip4({10, 0, 0, 1}, 24), Ip4({10, 0, 1, 1}, 24)},
       {Ip4({10, 0, 1, 2}, 24), Ip4({10, 0, 0, 2}, 24)},
       {"10.0.1.2", "10.0.0.2"}},
  };
  for (const Row& row : rows) EXPECT_EQ(Texts(InOrderOfTrial(row.own, row.peers)), row.order) << row.name;
}

// The ranks of a host begin with different ones of the networks that are equally good.
TEST(HostAddressesTest, RanksTakeTurns) {
  const std::vector<HostAddress> own = {Ip4({10, 0, 0, 1}, 24, 1000), Ip4({10, 0, 1, 1}, 24, 1000),
                                        Ip4({10, 0, 2, 1}, 24, 100)};
  const std::vector<HostAddress> peers = {Ip4({10, 0, 0, 2}, 24, 1000), Ip4({10, 0, 1, 2}, 24, 1000),
                                          Ip4({10, 0, 2, 2}, 24, 100), Ip4({192, 168, 0, 2}, 24, 1000)};
  EXPECT_THAT(Texts(InOrderOfTrial(own, peers, 0)), ElementsAre("10.0.0.2", "10.0.1.2", "10.0.2.2", "192.168.0.2"));
  EXPECT_THAT(Texts(InOrderOfTrial(own, peers, 1)), ElementsAre("10.0.1.2", "10.0.0.2", "10.0.2.2", "192.168.0.2"));
  EXPECT_EQ(InOrderOfTrial(own, peers, 2), InOrderOfTrial(own, peers, 0));
  // Networks that the host is not in may lead nowhere, so the first one stays the first.
  EXPECT_EQ(InOrderOfTrial({}, peers, 1), InOrderOfTrial({}, peers, 0));
  EXPECT_THAT(InOrderOfTrial(own, {}, 1), ElementsAre());
  // An address of another family is probably one of the same card.
  HostAddress six;
  six.family = 6;
  six.prefix_bits = 64;
  six.megabits = 1000;
  six.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  HostAddress peers_six = six;
  peers_six.bytes[15] = 2;
  EXPECT_THAT(Texts(InOrderOfTrial({own[0], six}, {peers[0], peers_six}, 1)), ElementsAre("10.0.0.2", "fd00::2"));
  EXPECT_THAT(Texts(InOrderOfTrial({own[0], six, own[1]}, {peers[0], peers_six, peers[1]}, 1)),
              ElementsAre("10.0.1.2", "10.0.0.2", "fd00::2"));
  // A second address of a card is no second network.
  const HostAddress again = Ip4({10, 0, 0, 9}, 24, 1000);
  EXPECT_THAT(Texts(InOrderOfTrial(own, {peers[0], again, peers[1]}, 1)),
              ElementsAre("10.0.1.2", "10.0.0.2", "10.0.0.9"));
}

// The ranks of a host do not take turns on networks of unknown speed, as nobody knows whether these are equal. They do
// if a person has chosen the networks.
TEST(HostAddressesTest, RanksTakeTurnsOnChosenNetworks) {
  const std::vector<HostAddress> own = {Ip4({10, 0, 0, 1}, 24), Ip4({10, 0, 1, 1}, 24)};
  const std::vector<HostAddress> peers = {Ip4({10, 0, 0, 2}, 24), Ip4({10, 0, 1, 2}, 24)};
  EXPECT_THAT(Texts(InOrderOfTrial(own, peers, 1)), ElementsAre("10.0.0.2", "10.0.1.2"));
  EXPECT_THAT(Texts(InOrderOfTrial(own, peers, 1, /*chosen=*/true)), ElementsAre("10.0.1.2", "10.0.0.2"));
}

// A speed that the driver does not know counts as 0. Some drivers write -1 then, and older ones write the same bits as
// a number without a sign.
TEST(HostAddressesTest, Speeds) {
  for (const auto& [text, megabits] : std::vector<std::pair<const char*, uint32_t>>{{"1000", 1000},
                                                                                    {"400000", 400000},
                                                                                    {"-1", 0},
                                                                                    {"4294967295", 0},
                                                                                    {"65535", 0},
                                                                                    {"0", 0},
                                                                                    {"", 0},
                                                                                    {"fast", 0}}) {
    EXPECT_EQ(MegabitsFrom(text), megabits) << text;
  }
}

// A person's choice limits the addresses, and gives their order.
TEST(HostAddressesTest, Chosen) {
  HostAddress six;
  six.family = 6;
  six.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5};
  const std::vector<HostAddress> own = {Ip4({10, 0, 0, 1}, 24), Ip4({10, 0, 1, 1}, 24), six};
  const auto chosen = [&own](const std::vector<std::string>& texts) { return Texts(ChosenOf(own, texts)); };
  EXPECT_THAT(chosen({"10.0.1.1"}), ElementsAre("10.0.1.1"));
  EXPECT_THAT(chosen({"fd00::5", "10.0.0.1"}), ElementsAre("fd00::5", "10.0.0.1"));
  EXPECT_THAT(chosen({"10.9.9.9", "nonsense"}), ElementsAre());
  EXPECT_THAT(chosen({}), ElementsAre("10.0.0.1", "10.0.1.1", "fd00::5"));
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
