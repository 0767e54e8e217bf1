#include "worker/bench/measure.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "mpi_group/choose_algorithm.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/transport.h"
#include "worker/bench/document.h"

namespace hooke {
namespace {

constexpr int kRanks = 2;
constexpr size_t kGroupsMax = 32;

struct Outcome {
  Measured measured;
  std::vector<Tuning::BetweenNodes> asked;  // Carriers of the groups, in the order in which they were made.
  std::vector<std::string> said;
};

// Measures with two ranks on `nodes` nodes. Returns rank 0's result.
Outcome MeasureOn(int nodes) {
  std::vector<std::vector<std::unique_ptr<Transport>>> transports(kGroupsMax);
  for (std::vector<std::unique_ptr<Transport>>& of_group : transports) of_group = MakeInProcessTransports(kRanks);
  std::vector<Outcome> outcomes(kRanks);
  RunRanks(kRanks, [&](int rank) {
    Outcome& outcome = outcomes[rank];
    MeasureOptions options;
    options.topology = OneNode(kRanks);
    options.topology.nodes = nodes;
    options.topology.smallest_node = options.topology.largest_node = kRanks / nodes;
    options.time_max = absl::Seconds(20);
    options.bytes_max = 256;
    options.make_group = [&](const Tuning& tuning) -> absl::StatusOr<std::unique_ptr<Group>> {
      const size_t number = outcome.asked.size();
      if (number == kGroupsMax) return absl::ResourceExhaustedError("more groups than this test has transports for");
      outcome.asked.push_back(tuning.between_nodes);
      GroupOptions group;
      group.tuning = tuning;
      group.node = nodes == 1 || rank == 0 ? "a" : "b";
      return MakeTransportGroup(std::move(transports[number][rank]), group);
    };
    options.on_operation = [&](absl::string_view operation) { outcome.said.emplace_back(operation); };
    absl::StatusOr<Measured> measured = Measure(options);
    ASSERT_EQ(measured.status(), absl::OkStatus());
    outcome.measured = *std::move(measured);
  });
  EXPECT_EQ(outcomes[1].asked, outcomes[0].asked);
  return std::move(outcomes[0]);
}

// With several nodes the carrier between them is measured first, and then everything else over the faster one. The
// tuning document says which carrier that is.
TEST(MeasureTest, SeveralNodes) {
  const Outcome outcome = MeasureOn(2);
  const Measured& measured = outcome.measured;
  ASSERT_EQ(measured.carriers.size(), 4U);
  EXPECT_EQ(measured.between_nodes, FitCarrier(measured.carriers, MeasureOptions().margin));
  ASSERT_GT(outcome.asked.size(), 3U);
  EXPECT_EQ(outcome.asked[0], Tuning::BetweenNodes::kSockets);
  EXPECT_EQ(outcome.asked[1], Tuning::BetweenNodes::kMpi);
  for (size_t i = 2; i < outcome.asked.size(); ++i) EXPECT_EQ(outcome.asked[i], measured.between_nodes);
  EXPECT_EQ(outcome.said.front(), "messages between nodes");
  EXPECT_EQ(outcome.said[1], "all-reduce");
  EXPECT_EQ(measured.cells, measured.cells_planned);
  Topology topology = OneNode(kRanks);
  topology.nodes = 2;
  const nlohmann::json document = nlohmann::json::parse(TuningDocument(topology, measured, Tuning()));
  ASSERT_EQ(document["between_nodes"].size(), measured.carriers.size());
  for (size_t i = 0; i < measured.carriers.size(); ++i) {
    const nlohmann::json& one = document["between_nodes"][i];
    EXPECT_EQ(one["carrier"], std::string(NameOf(measured.carriers[i].carrier)));
    EXPECT_EQ(one["bytes"], measured.carriers[i].bytes);
    EXPECT_EQ(one["median_us"], measured.carriers[i].median_us);
  }
}

TEST(MeasureTest, OneNodeHasNoMessagesBetweenNodes) {
  const Outcome outcome = MeasureOn(1);
  EXPECT_EQ(outcome.said.front(), "all-reduce");
  EXPECT_TRUE(outcome.measured.carriers.empty());
  for (Tuning::BetweenNodes asked : outcome.asked) EXPECT_EQ(asked, Tuning::BetweenNodes::kAuto);
  const std::string text = TuningDocument(OneNode(kRanks), outcome.measured, Tuning());
  EXPECT_FALSE(nlohmann::json::parse(text).contains("between_nodes"));
}

}  // namespace
}  // namespace hooke
