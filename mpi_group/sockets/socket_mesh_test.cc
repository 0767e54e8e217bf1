#include "mpi_group/sockets/socket_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/sockets/mesh_maker.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

absl::Time Soon() { return SteadyNow() + absl::Seconds(20); }

Nodes NodesOf(const std::vector<int>& node_of_rank) {
  std::vector<std::string> identities;
  identities.reserve(node_of_rank.size());
  for (int node : node_of_rank) identities.push_back(absl::StrCat(node));
  return NodesFrom(identities);
}

// Connects ranks that are threads and returns their meshes; options[r] are rank r's.
std::vector<Mesh> Connect(const std::vector<int>& node_of_rank, const std::vector<MeshOptions>& options,
                          bool two_level = true) {
  const std::vector<std::unique_ptr<Transport>> transports =
      MakeInProcessTransports(static_cast<int>(node_of_rank.size()));
  const Nodes nodes = NodesOf(node_of_rank);
  std::vector<Mesh> meshes(node_of_rank.size());
  RunRanks(static_cast<int>(node_of_rank.size()), [&](int rank) {
    absl::StatusOr<Mesh> mesh =
        ConnectMesh(*transports[rank], nodes, CircleOf(rank, nodes, two_level), options[rank], Soon());
    ASSERT_EQ(mesh.status(), absl::OkStatus());
    meshes[rank] = *std::move(mesh);
  });
  return meshes;
}

MeshOptions OnThisHost() {
  MeshOptions options;
  options.identity = "host";
  return options;
}

// Each pair of ranks on different nodes is connected, end to end; no others are.
TEST(SocketMeshTest, PairsOfDifferentNodes) {
  const std::vector<int> node_of_rank = {0, 1, 1, 2, 0};
  const std::vector<Mesh> meshes = Connect(node_of_rank, std::vector<MeshOptions>(5, OnThisHost()));
  for (size_t a = 0; a < 5; ++a) {
    EXPECT_EQ(meshes[a].why_not, "");
    ASSERT_EQ(meshes[a].connections.size(), 5);
    for (size_t b = 0; b < 5; ++b) {
      const FileDescriptor& connection = meshes[a].connections[b];
      ASSERT_EQ(connection.open(), node_of_rank[a] != node_of_rank[b]);
      const std::string text = absl::StrCat(a, " to ", b);
      if (!connection.open()) continue;
      ASSERT_EQ(send(connection.get(), text.data(), text.size(), 0), text.size());
    }
  }
  for (size_t a = 0; a < 5; ++a) {
    for (size_t b = 0; b < 5; ++b) {
      const FileDescriptor& connection = meshes[a].connections[b];
      if (!connection.open()) continue;
      char bytes[100];
      const ssize_t count = recv(connection.get(), bytes, sizeof(bytes), 0);
      EXPECT_EQ(std::string(bytes, std::max<ssize_t>(count, 0)), absl::StrCat(b, " to ", a));
    }
  }
}

// A circle holds the ranks with the same index on their nodes, one from each node that has enough ranks. In a small
// group, and without two-level collectives, all ranks are one circle.
TEST(SocketMeshTest, CircleOf) {
  std::vector<int> node_of_rank(40);
  for (int rank = 0; rank < 40; ++rank) node_of_rank[rank] = rank < 20 ? 0 : rank < 38 ? 1 : 2;
  const Nodes large = NodesOf(node_of_rank);
  EXPECT_THAT(CircleOf(0, large, true), ElementsAre(0, 20, 38));
  EXPECT_THAT(CircleOf(39, large, true), ElementsAre(1, 21, 39));
  EXPECT_THAT(CircleOf(22, large, true), ElementsAre(2, 22));
  EXPECT_THAT(CircleOf(19, large, true), ElementsAre(19));
  EXPECT_THAT(CircleOf(3, large, false), SizeIs(40));
  const Nodes small = NodesOf({0, 1, 1, 2, 0});
  EXPECT_THAT(CircleOf(2, small, true), ElementsAre(0, 1, 2, 3, 4));
  const Nodes alone = NodesFrom(std::vector<NodePattern>{{0, 100, 1, 1}}, 100).value();
  EXPECT_THAT(CircleOf(7, alone, false), SizeIs(100));
}

// In a large group only the ranks of a circle are connected.
TEST(SocketMeshTest, LargeGroupConnectsCirclesOnly) {
  std::vector<int> node_of_rank(40);
  for (int rank = 0; rank < 40; ++rank) node_of_rank[rank] = rank < 36 ? rank % 3 : 0;
  const Nodes nodes = NodesOf(node_of_rank);
  const std::vector<Mesh> meshes = Connect(node_of_rank, std::vector<MeshOptions>(40, OnThisHost()));
  for (int a = 0; a < 40; ++a) {
    ASSERT_EQ(meshes[a].why_not, "");
    const std::vector<int> circle = CircleOf(a, nodes, true);
    for (int b = 0; b < 40; ++b) {
      const bool in_circle = std::find(circle.begin(), circle.end(), b) != circle.end();
      EXPECT_EQ(meshes[a].connections[b].open(), in_circle && a != b) << a << ", " << b;
    }
  }
}

// Sets this process's limits of open files and connects two ranks. Prints why they are not connected, and the soft
// limit then.
void ConnectWithLimits(rlim_t soft, rlim_t hard) {
  const rlimit limits = {soft, hard};
  setrlimit(RLIMIT_NOFILE, &limits);
  const std::vector<Mesh> meshes = Connect({0, 1}, {OnThisHost(), OnThisHost()});
  rlimit now = {};
  getrlimit(RLIMIT_NOFILE, &now);
  std::cerr << "\"" << meshes[0].why_not << "\", \"" << meshes[1].why_not << "\", " << now.rlim_cur << "\n";
  _exit(0);
}

// A soft limit of open files that is too low is raised to the hard one. If that is too low, all ranks say before they
// connect how many files a rank needs.
TEST(SocketMeshTest, LimitOfOpenFiles) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(ConnectWithLimits(40, 400), testing::ExitedWithCode(0), "\"\", \"\", 400");
  EXPECT_EXIT(ConnectWithLimits(300, 400), testing::ExitedWithCode(0), "\"\", \"\", 300");
  const std::string why =
      "\"rank 0 needs [0-9]+ open files, and the limit is 50; raise it with `ulimit -n [0-9]+` before the ranks are "
      "started\"";
  EXPECT_EXIT(ConnectWithLimits(40, 50), testing::ExitedWithCode(0), why + ", " + why + ", 40");
}

// If a rank cannot be reached, all ranks go on without sockets, and say why. The ranks that tried to connect to it name
// it.
TEST(SocketMeshTest, UnreachableRank) {
  std::vector<MeshOptions> options(3, OnThisHost());
  for (MeshOptions& each : options) each.patience = absl::Seconds(1);
  options[0].identity = "another host, without addresses";
  const std::vector<Mesh> meshes = Connect({0, 1, 2}, options);
  EXPECT_THAT(meshes[1].why_not, HasSubstr("rank 1 cannot connect to rank 0"));
  EXPECT_THAT(meshes[2].why_not, HasSubstr("rank 2 cannot connect to rank 0"));
  for (const Mesh& mesh : meshes) {
    EXPECT_NE(mesh.why_not, "");
    EXPECT_TRUE(mesh.connections.empty());
  }
}

// Runs one rank's MeshMaker; the test makes the other connections by hand.
class MeshMakerTest : public testing::Test {
 protected:
  static constexpr GroupToken kToken = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

  MeshMakerTest() {
    absl::StatusOr<Listener> listener = ListenOnLoopback();
    if (listener.ok()) listener_ = *std::move(listener);
  }

  // The options of one of three ranks. The test adds the peers.
  static MeshMaker::Options RankOfThree(int rank) {
    MeshMaker::Options options;
    options.rank = rank;
    options.ranks = 3;
    options.token = kToken;
    return options;
  }

  // Returns a socket connected to `port` of this host.
  static FileDescriptor ConnectTo(uint16_t port) {
    const SocketAddress address = ToSocketAddress(LoopbackAddress(), port);
    FileDescriptor made(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(made.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.bytes), 0);
    return made;
  }

  template <typename Value>
  static void Send(const FileDescriptor& socket, const Value& value, size_t bytes = sizeof(Value)) {
    EXPECT_EQ(send(socket.get(), &value, bytes, MSG_NOSIGNAL), bytes);
  }

  // Returns the bytes that come until the other end closes; waits 10 seconds at most.
  static std::string ReceiveAll(const FileDescriptor& socket) {
    const timeval limit = {10, 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    std::string all;
    char bytes[100];
    for (ssize_t count; (count = recv(socket.get(), bytes, sizeof(bytes), 0)) > 0;) all.append(bytes, count);
    return all;
  }

  Listener listener_;
};

// Strangers that send garbage, a wrong token, or the number of an unexpected rank see only their connection close.
// Strangers that send nothing, or only a part of a greeting, change nothing either. The real rank still gets in.
TEST_F(MeshMakerTest, StrangersStayOutside) {
  MeshMaker::Options options = RankOfThree(0);
  options.above = {2};
  const FileDescriptor silent = ConnectTo(listener_.port);
  const FileDescriptor half = ConnectTo(listener_.port);
  Send(half, Greeting{Greeting::kMagic, kToken, 2, 0}, 20);
  std::vector<FileDescriptor> strangers;
  GroupToken wrong = kToken;
  wrong[15] ^= 1;
  for (const Greeting& greeting : {Greeting{Greeting::kMagic, wrong, 2, 0}, Greeting{Greeting::kMagic, kToken, 1, 0},
                                   Greeting{Greeting::kMagic, kToken, 2, 1}, Greeting{Greeting::kMagic, kToken, -7, 0},
                                   Greeting{Greeting::kMagic, kToken, 1 << 30, 0},
                                   Greeting{{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}, kToken, 2, 0}}) {
    strangers.push_back(ConnectTo(listener_.port));
    Send(strangers.back(), greeting);
  }
  ConnectTo(listener_.port);  // This stranger closes its connection at once.
  const uint16_t port = listener_.port;
  MeshMaker maker(options, std::move(listener_.socket));
  std::thread rank([&maker] { EXPECT_EQ(maker.Run(Soon()), ""); });
  for (const FileDescriptor& stranger : strangers) EXPECT_EQ(ReceiveAll(stranger), "");
  const FileDescriptor real = ConnectTo(port);
  const Greeting own = {Greeting::kMagic, kToken, 2, 0};
  Send(real, own);
  rank.join();
  Greeting answer;
  ASSERT_EQ(recv(real.get(), &answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
  EXPECT_TRUE((answer == Greeting{Greeting::kMagic, kToken, 0, 2}));
  const std::vector<FileDescriptor> connections = maker.Take();
  EXPECT_TRUE(connections[2].open());
  EXPECT_FALSE(connections[1].open());
  Send(real, 'x');
  char byte = 0;
  pollfd readable = {connections[2].get(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 10000), 1);
  ASSERT_EQ(recv(connections[2].get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
}

// The real rank gets in even if more strangers connect and send nothing than may wait at a time.
TEST_F(MeshMakerTest, ManySilentStrangers) {
  MeshMaker::Options options = RankOfThree(0);
  options.above = {2};
  std::vector<FileDescriptor> strangers;
  strangers.reserve(100);
  for (int i = 0; i < 100; ++i) strangers.push_back(ConnectTo(listener_.port));
  const FileDescriptor real = ConnectTo(listener_.port);
  Send(real, Greeting{Greeting::kMagic, kToken, 2, 0});
  MeshMaker maker(options, std::move(listener_.socket));
  EXPECT_EQ(maker.Run(Soon()), "");
}

// A stranger that listens at a rank's address is not taken for the rank, whether it answers something or nothing. The
// rank's next address is tried, and the error tells how each tried address failed.
TEST_F(MeshMakerTest, StrangersThatListen) {
  MeshMaker::Options options = RankOfThree(1);
  options.below = {{0, listener_.port, {LoopbackAddress(), LoopbackAddress()}}};
  absl::StatusOr<Listener> own = ListenOnLoopback();
  ASSERT_TRUE(own.ok());
  MeshMaker maker(options, std::move(own->socket));
  std::string missing;
  std::thread rank([&] { missing = maker.Run(SteadyNow() + absl::Seconds(2)); });
  pollfd waiting = {listener_.socket.get(), POLLIN, 0};
  std::vector<FileDescriptor> accepted;
  for (int i = 0; i < 2; ++i) {
    if (poll(&waiting, 1, 10000) != 1) break;
    accepted.emplace_back(accept(listener_.socket.get(), nullptr, nullptr));
    Greeting greeting;
    EXPECT_EQ(recv(accepted.back().get(), &greeting, sizeof(greeting), MSG_WAITALL), sizeof(greeting));
    if (i == 0) Send(accepted.back(), greeting);  // Answers like an echo server.
  }
  rank.join();
  EXPECT_EQ(accepted.size(), 2);
  EXPECT_THAT(missing, AllOf(HasSubstr("rank 1 cannot connect to rank 0"),
                             HasSubstr("127.0.0.1: another program answers there")));
  EXPECT_THAT(maker.Take(), Each(testing::Property(&FileDescriptor::open, false)));
}

// If an address drops all packets, the next address is tried after a second, not after half of the time to connect.
TEST_F(MeshMakerTest, AnAddressThatDropsPacketsIsLeftSoon) {
  HostAddress drops = LoopbackAddress();
  drops.bytes[3] = 2;
  const SocketAddress where = ToSocketAddress(drops, listener_.port);
  const auto* address = reinterpret_cast<const sockaddr*>(&where.storage);
  // The kernel drops what comes for a listener whose queue is full.
  FileDescriptor full(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(bind(full.get(), address, where.bytes), 0);
  ASSERT_EQ(listen(full.get(), 0), 0);
  std::vector<FileDescriptor> fillers;
  for (int i = 0; i < 3; ++i) {
    fillers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    static_cast<void>(connect(fillers.back().get(), address, where.bytes));
  }
  MeshMaker::Options peer = RankOfThree(0);
  peer.above = {1};
  MeshMaker lower(peer, std::move(listener_.socket));
  std::thread rank([&lower] { EXPECT_EQ(lower.Run(Soon()), ""); });
  MeshMaker::Options options = RankOfThree(1);
  options.below = {{0, listener_.port, {drops, LoopbackAddress()}}};
  absl::StatusOr<Listener> own = ListenOnLoopback();
  ASSERT_TRUE(own.ok());
  MeshMaker upper(options, std::move(own->socket));
  const absl::Time begin = SteadyNow();
  EXPECT_EQ(upper.Run(begin + absl::Minutes(1)), "");
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(20));
  rank.join();
}

}  // namespace
}  // namespace hooke
