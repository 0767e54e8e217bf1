#include "job/profile/step_split.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hooke {
namespace {

struct Event {
  uint32_t track = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  int kind = 0;  // The phase, or the number of the call.
};

v1::ReadProfileResponse Rank(uint32_t group, uint32_t rank, const std::vector<Event>& events) {
  v1::ReadProfileResponse response;
  response.set_group(group);
  response.set_rank(rank);
  response.mutable_profile()->set_machine("m");
  for (const Event& event : events) {
    v1::TraceEvent& message = *response.mutable_profile()->add_events();
    message.set_track(event.track);
    message.set_begin_ns(event.begin);
    message.set_duration_ns(event.end - event.begin);
    if (event.track == 0) {
      message.set_phase(static_cast<v1::RankProgress::Phase>(event.kind));
    } else {
      message.set_operation(v1::ALL_REDUCE);
      message.set_call(static_cast<uint64_t>(event.kind));
    }
  }
  return response;
}

constexpr int kCompute = v1::RankProgress::COMPUTE;
constexpr int kCollective = v1::RankProgress::COLLECTIVE;
constexpr int kExchange = v1::RankProgress::EXCHANGE;

// Rank 1 computes for 130 ns and rank 0 for 100 ns, so rank 0 waits for 30 ns. On both ranks the collective then takes
// 20 ns and the exchange 50 ns.
TEST(StepSplitTest, TellsWaitingFromMoving) {
  const std::vector<StepSplit> splits = SplitSteps({
      Rank(0, 0, {{0, 0, 100, kCompute}, {0, 100, 150, kCollective}, {1, 100, 150, 7}, {0, 150, 200, kExchange}}),
      Rank(0, 1, {{0, 0, 130, kCompute}, {0, 130, 150, kCollective}, {1, 130, 150, 7}, {0, 150, 200, kExchange}}),
  });
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_EQ(splits[0].ranks, 2u);
  EXPECT_EQ(splits[0].window_ns, 200);
  EXPECT_EQ(splits[0].compute_ns, 230);
  EXPECT_EQ(splits[0].waiting_ns, 30);
  EXPECT_EQ(splits[0].collective_ns, 40);
  EXPECT_EQ(splits[0].exchange_ns, 100);
  EXPECT_EQ(splits[0].collectives, 1u);
  EXPECT_EQ(splits[0].last_rank, 1u);
  EXPECT_EQ(splits[0].last_times, 1u);
}

// A wait that overlaps with computing costs nothing. Waits in two tracks at once count once.
TEST(StepSplitTest, CountsOnlyIdleTime) {
  const std::vector<StepSplit> splits = SplitSteps({
      Rank(0, 0, {{0, 0, 100, kCompute}, {1, 50, 190, 1}, {2, 60, 190, 1}, {0, 100, 200, kCollective}}),
      Rank(0, 1, {{0, 0, 170, kCompute}, {1, 160, 190, 1}, {2, 165, 190, 1}, {0, 170, 200, kCollective}}),
  });
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_EQ(splits[0].compute_ns, 270);
  EXPECT_EQ(splits[0].waiting_ns, 65);  // Rank 0, from 100 to 165.
  EXPECT_EQ(splits[0].collective_ns, 65);
}

// Ranks send their events at different times. Only the time that all of them cover counts, group by group.
TEST(StepSplitTest, TakesTheTimeThatAllRanksCover) {
  const std::vector<StepSplit> splits = SplitSteps({
      Rank(3, 0, {{0, 100, 300, kCompute}, {0, 300, 400, kCollective}, {1, 300, 400, 9}}),
      Rank(3, 1, {{0, 0, 50, kCompute}, {0, 50, 250, kCompute}}),
      Rank(4, 0, {{0, 0, 10, kCompute}}),
      Rank(5, 0, {{0, 0, 10, kCompute}}),
      Rank(5, 1, {{0, 20, 30, kCompute}}),
  });
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0].group, 3u);
  EXPECT_EQ(splits[0].window_ns, 150);
  EXPECT_EQ(splits[0].compute_ns, 300);
  EXPECT_EQ(splits[0].collectives, 0u);
  EXPECT_EQ(splits[1].group, 4u);
  EXPECT_EQ(splits[1].compute_ns, 10);
}

// Numbers that no clock shows are left out, as are calls without a number.
TEST(StepSplitTest, DoesNotTrustRanks) {
  v1::ReadProfileResponse rank = Rank(0, 0, {{0, 0, 100, kCompute}, {1, 10, 20, 0}});
  v1::TraceEvent& far = *rank.mutable_profile()->add_events();
  far.set_begin_ns(~uint64_t{0});
  far.set_duration_ns(~uint64_t{0});
  far.set_phase(v1::RankProgress::COMPUTE);
  const std::vector<StepSplit> splits = SplitSteps({rank});
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_EQ(splits[0].compute_ns, 100);
  EXPECT_EQ(splits[0].collectives, 0u);
}

TEST(StepSplitTest, ShowsShares) {
  StepSplit split;
  split.group = 2;
  split.ranks = 4;
  split.window_ns = 12340000000;
  split.compute_ns = 880;
  split.waiting_ns = 72;
  split.collective_ns = 14;
  split.exchange_ns = 34;
  split.collectives = 200;
  split.last_rank = 3;
  split.last_times = 142;
  const nlohmann::ordered_json json = StepSplitToJson({split});
  EXPECT_EQ(json.at(0).at("waiting_share"), 0.072);
  EXPECT_EQ(json.at(0).at("last_share"), 0.71);
  EXPECT_EQ(StepSplit().ShareOf(0), 0);
  EXPECT_EQ(StepSplit().LastShare(), 0);
}

v1::NodeStatus Node(v1::NodeStatus::Kind kind, const std::string& name, double cores) {
  v1::NodeStatus node;
  node.set_kind(kind);
  node.set_name(name);
  node.set_alive(true);
  node.set_cores(cores);
  return node;
}

// Only the job's own servers count, and none that is silent.
TEST(StepSplitTest, ShowsCoresOfTheJobsServers) {
  v1::JobStatus job;
  for (const char* server : {"a:1", "b:1", "gone:1"}) job.add_servers(server);
  v1::ListNodesResponse nodes;
  *nodes.add_nodes() = Node(v1::NodeStatus::SERVER, "a:1", 0.25);
  *nodes.add_nodes() = Node(v1::NodeStatus::SERVER, "another:1", 1);
  *nodes.add_nodes() = Node(v1::NodeStatus::SERVER, "b:1", 0.5);
  *nodes.add_nodes() = Node(v1::NodeStatus::SERVER, "gone:1", 1);
  nodes.mutable_nodes(3)->set_alive(false);
  *nodes.add_nodes() = Node(v1::NodeStatus::WORKER, "a:1", 3);
  const std::vector<ServerCores> servers = CoresOfServers(job, nodes);
  const nlohmann::ordered_json json = ServerCoresToJson(servers);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json.at(0).at("address"), "a:1");
  EXPECT_EQ(json.at(1).at("cores"), 0.5);
}

}  // namespace
}  // namespace hooke
