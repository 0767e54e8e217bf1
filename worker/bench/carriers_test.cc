#include "worker/bench/carriers.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "mpi_group/groups/transport_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/transport.h"

namespace hooke {
namespace {

constexpr auto kSockets = Tuning::BetweenNodes::kSockets;
constexpr auto kMpi = Tuning::BetweenNodes::kMpi;
constexpr auto kAuto = Tuning::BetweenNodes::kAuto;

TEST(FitCarrierTest, Table) {
  const struct {
    const char* name;
    std::vector<CarrierTime> times;
    Tuning::BetweenNodes carrier;
  } kCases[] = {
      {"nothing measured", {}, kAuto},
      {"one without the other", {{kSockets, 4, 10, 9}}, kAuto},
      {"as fast", {{kSockets, 4, 10, 10}, {kMpi, 4, 10, 10}}, kAuto},
      {"faster by less than the margin", {{kSockets, 4, 10, 9}, {kMpi, 4, 11, 10.4}}, kAuto},
      {"faster, but the other was disturbed", {{kSockets, 4, 10, 9}, {kMpi, 4, 20, 10}}, kAuto},
      {"sockets", {{kSockets, 4, 10, 9}, {kMpi, 4, 11, 10.6}}, kSockets},
      {"MPI", {{kSockets, 4, 11, 10.6}, {kMpi, 4, 10, 9}}, kMpi},
      {"twice here, half there",
       {{kSockets, 4, 10, 10}, {kMpi, 4, 20, 20}, {kSockets, 8, 20, 20}, {kMpi, 8, 10, 10}},
       kAuto},
      {"more here than there",
       {{kSockets, 4, 10, 10}, {kMpi, 4, 30, 30}, {kSockets, 8, 20, 20}, {kMpi, 8, 10, 10}},
       kSockets},
  };
  for (const auto& test : kCases) EXPECT_EQ(FitCarrier(test.times, 0.05), test.carrier) << test.name;
}

// Two ranks that count as two nodes measure both carriers at all sizes. Both ranks get the same times.
TEST(MeasureCarriersTest, BothAtAllSizes) {
  constexpr int kRanks = 2;
  // The transports of two groups of all ranks, one group for each carrier.
  std::vector<std::vector<std::unique_ptr<Transport>>> transports(2);
  for (std::vector<std::unique_ptr<Transport>>& of_group : transports) of_group = MakeInProcessTransports(kRanks);
  std::vector<std::vector<CarrierTime>> times(kRanks);
  // For each rank, the carriers of the groups that it made.
  std::vector<std::vector<Tuning::BetweenNodes>> carriers(kRanks);
  RunRanks(kRanks, [&](int rank) {
    size_t made = 0;
    CarriersOptions options;
    // With no time left, the fewest rounds are measured.
    options.time_max = absl::ZeroDuration();
    options.bytes_max = 16384;
    options.make_group = [&](const Tuning& tuning) -> absl::StatusOr<std::unique_ptr<Group>> {
      carriers[rank].push_back(tuning.between_nodes);
      GroupOptions group;
      group.tuning = tuning;
      group.node = rank == 0 ? "a" : "b";
      return MakeTransportGroup(std::move(transports[made++][rank]), group);
    };
    absl::StatusOr<std::vector<CarrierTime>> measured = MeasureCarriers(options);
    ASSERT_EQ(measured.status(), absl::OkStatus());
    times[rank] = *std::move(measured);
  });
  std::set<std::pair<Tuning::BetweenNodes, uint64_t>> found;
  for (const CarrierTime& one : times[0]) {
    EXPECT_GT(one.quarter_us, 0);
    EXPECT_GE(one.median_us, one.quarter_us);
    found.insert({one.carrier, one.bytes});
  }
  EXPECT_EQ(found, (std::set<std::pair<Tuning::BetweenNodes, uint64_t>>{
                       {kSockets, 4}, {kSockets, 256}, {kSockets, 16384}, {kMpi, 4}, {kMpi, 256}, {kMpi, 16384}}));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(carriers[rank], (std::vector<Tuning::BetweenNodes>{kSockets, kMpi}));
  }
  ASSERT_EQ(times[1].size(), times[0].size());
  for (size_t i = 0; i < times[0].size(); ++i) EXPECT_EQ(times[1][i].median_us, times[0][i].median_us);
}

}  // namespace
}  // namespace hooke
