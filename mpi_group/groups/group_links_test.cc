// Groups that measure the links between their nodes (GroupOptions::on_links).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"

namespace hooke {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

// The links that the ranks of a group have measured and passed to on_links.
struct Told {
  absl::Mutex mutex;
  std::vector<size_t> links;  // Of each call: the number of links.
  std::vector<int> peers;
};

GroupOptions OptionsThatTell(Told& told, Tuning::BetweenNodes between) {
  GroupOptions options;
  options.tuning.between_nodes = between;
  options.on_links = [&told](const std::vector<LinkFigures>& links) {
    absl::MutexLock lock(&told.mutex);
    told.links.push_back(links.size());
    for (const LinkFigures& link : links) {
      EXPECT_GT(link.round_trip, absl::ZeroDuration());
      EXPECT_GE(link.bytes_per_second, 0);
      told.peers.push_back(link.peer);
    }
  };
  return options;
}

// Runs three barriers in a group whose rank r is on node nodes[r], and then one in its clone.
void RunGroupAndClone(const std::vector<std::string>& nodes, const GroupOptions& options) {
  const int n = static_cast<int>(nodes.size());
  std::vector<std::unique_ptr<Transport>> first = MakeInProcessTransports(n);
  std::vector<std::unique_ptr<Transport>> second = MakeInProcessTransports(n);
  RunRanks(n, [&](int rank) {
    GroupOptions own = options;
    own.node = nodes[rank];
    const std::unique_ptr<Group> group = MakeTransportGroup(
        std::move(first[rank]), own, [&second, rank](absl::Time) { return std::move(second[rank]); });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(group->Barrier(), absl::OkStatus());
    const absl::StatusOr<std::unique_ptr<Group>> clone = group->Clone();
    ASSERT_TRUE(clone.ok()) << clone.status();
    EXPECT_EQ((*clone)->Barrier(), absl::OkStatus());
  });
}

// The first ranks of the nodes measure each pair once, in the group's first call, over sockets as well as through the
// transport below. Clones do not measure again.
TEST(GroupLinksTest, MeasuresEachPairOfNodesOnce) {
  for (const Tuning::BetweenNodes between : {Tuning::BetweenNodes::kSockets, Tuning::BetweenNodes::kMpi}) {
    Told told;
    RunGroupAndClone({"a", "b", "b", "c", "a"}, OptionsThatTell(told, between));
    EXPECT_THAT(told.links, UnorderedElementsAre(2, 1, 0));
    EXPECT_THAT(told.peers, UnorderedElementsAre(1, 3, 3));
  }
}

// A group on one node has no links.
TEST(GroupLinksTest, OneNodeHasNoLinks) {
  Told told;
  RunGroupAndClone({"a", "a", "a"}, OptionsThatTell(told, Tuning::BetweenNodes::kSockets));
  EXPECT_THAT(told.links, IsEmpty());
}

}  // namespace
}  // namespace hooke
