// Tests every collective over sockets between threads.

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/collective_cases.h"
#include "mpi_group/collectives/transport_collectives.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/sockets/socket_ranks.h"

namespace hooke {
namespace {

struct NodesCase {
  std::string name;
  std::vector<int> node_of_rank;
};

class SocketCollectivesTest : public testing::TestWithParam<std::tuple<NodesCase, NamedCheck>> {};

// Every collective is right for every size, type and reduction, whether all messages go over sockets or only some.
TEST_P(SocketCollectivesTest, AllCases) {
  const auto& [nodes, collective] = GetParam();
  SocketRanks ranks(nodes.node_of_rank);
  RunRanks(ranks.size(), [&, check = collective.check](int rank) {
    for (const CollectiveCase& one : AllCollectiveCases()) check(ranks[rank], one);
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, SocketCollectivesTest,
    testing::Combine(testing::Values(NodesCase{"TwoNodes", {0, 1}}, NodesCase{"Mixed", {0, 0, 1}},
                                     NodesCase{"FourNodes", {0, 1, 2, 3}}, NodesCase{"Interleaved", {0, 1, 0, 1, 1}}),
                     testing::ValuesIn(AllTransportCollectives())),
    [](const auto& info) { return absl::StrCat(std::get<1>(info.param).name, "On", std::get<0>(info.param).name); });

}  // namespace
}  // namespace hooke
