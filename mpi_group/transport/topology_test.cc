#include "mpi_group/transport/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/time/clock.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"

namespace hooke {
namespace {

using testing::ElementsAre;

// Nodes are numbered in the order of their lowest ranks.
TEST(TopologyTest, NodesFrom) {
  const Nodes nodes = NodesFrom({"x", "y", "y", "x", "z"});
  EXPECT_THAT(nodes.node_of_rank, ElementsAre(0, 1, 1, 0, 2));
  EXPECT_THAT(nodes.ranks_of_node, ElementsAre(ElementsAre(0, 3), ElementsAre(1, 2), ElementsAre(4)));
}

// All ranks get the same nodes, and rank 0's text.
TEST(TopologyTest, AllRanksLearnTheSame) {
  const std::vector<std::string> identities = {"a", "b", "a"};
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(3);
  RunRanks(3, [&](int rank) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    const absl::StatusOr<Nodes> nodes = GatherNodes(*transports[rank], identities[rank], deadline);
    ASSERT_EQ(nodes.status(), absl::OkStatus());
    EXPECT_THAT(nodes->node_of_rank, ElementsAre(0, 1, 0));
    for (const std::string& text : {std::string(), std::string("hello"), std::string(100000, 'x')}) {
      const absl::StatusOr<std::string> heard = ShareText(*transports[rank], rank == 0 ? text : "other", deadline);
      ASSERT_EQ(heard.status(), absl::OkStatus());
      EXPECT_EQ(*heard, text);
    }
  });
}

// All ranks refuse a text that is too long, and the transport remains usable.
TEST(TopologyTest, TooLongTextIsRefused) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    EXPECT_EQ(ShareText(*transports[rank], std::string((1 << 20) + 1, 'x'), deadline).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ShareText(*transports[rank], "ok", deadline).status(), absl::OkStatus());
  });
}

// A process always has the same identity.
TEST(TopologyTest, IdentityIsStable) {
  EXPECT_EQ(NodeIdentity(), NodeIdentity());
  EXPECT_THAT(NodeIdentity(), testing::HasSubstr("network "));
}

}  // namespace
}  // namespace hooke
