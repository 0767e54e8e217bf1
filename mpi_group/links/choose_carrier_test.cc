#include "mpi_group/links/choose_carrier.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/forwarding_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

LinkFigures Link(int peer, absl::Duration round_trip, double bytes_per_second) {
  return {peer, round_trip, bytes_per_second};
}

// The time of a message of 1 MiB decides: half a round trip, and its bytes at the bandwidth. A lower round trip alone
// is not enough.
TEST(ChooseCarrierTest, TheTimeOfAMessageDecides) {
  const LinkFigures ethernet = Link(1, absl::Microseconds(40), 1.2e9);
  const LinkFigures infiniband = Link(1, absl::Microseconds(4), 12e9);
  EXPECT_EQ(WhyMpi({infiniband}, {ethernet}),
            "MPI was measured to be faster: 1 MiB takes it 89 us, and sockets 893 us");
  EXPECT_EQ(WhyMpi({ethernet}, {infiniband}), "");
  EXPECT_EQ(WhyMpi({ethernet}, {ethernet}), "");
  EXPECT_EQ(WhyMpi({Link(1, absl::Microseconds(4), 1e9)}, {ethernet}), "");
  EXPECT_NE(WhyMpi({Link(1, absl::Milliseconds(2), 1e12)}, {Link(1, absl::Milliseconds(1), 1e9)}), "");
}

// Where bandwidths are not known, round trips decide. Where nothing was measured, sockets stay.
TEST(ChooseCarrierTest, FewFigures) {
  EXPECT_NE(WhyMpi({Link(1, absl::Milliseconds(9), 0)}, {Link(1, absl::Milliseconds(10), 0)}), "");
  EXPECT_EQ(WhyMpi({Link(1, absl::Milliseconds(10), 0)}, {Link(1, absl::Milliseconds(9), 0)}), "");
  EXPECT_EQ(WhyMpi({}, {}), "");
}

// All peers count. A carrier that is good to one of them and bad to another is as good as both together.
TEST(ChooseCarrierTest, AllPeersCount) {
  const std::vector<LinkFigures> mixed = {Link(1, absl::Microseconds(4), 12e9), Link(2, absl::Microseconds(40), 1e8)};
  const std::vector<LinkFigures> even = {Link(1, absl::Microseconds(40), 1e9), Link(2, absl::Microseconds(40), 1e9)};
  EXPECT_EQ(WhyMpi(mixed, even), "");
  EXPECT_NE(WhyMpi(even, mixed), "");
}

// A transport on which each message takes a while.
class SlowTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    absl::SleepFor(absl::Milliseconds(5));
    return ForwardingTransport::StartSend(outgoing);
  }
};

// Returns what each of three ranks learns. One of the two carriers is slow.
std::vector<std::string> MeasureThree(bool mpi_is_slow) {
  std::vector<std::unique_ptr<Transport>> quick = MakeInProcessTransports(3);
  std::vector<std::unique_ptr<Transport>> slow;
  for (auto& transport : MakeInProcessTransports(3)) {
    slow.push_back(std::make_unique<SlowTransport>(std::move(transport)));
  }
  std::vector<std::string> learned(3);
  RunRanks(3, [&](int rank) {
    std::vector<char> memory;
    Transport& mpi = mpi_is_slow ? *slow[rank] : *quick[rank];
    Transport& sockets = mpi_is_slow ? *quick[rank] : *slow[rank];
    absl::StatusOr<std::string> why = MeasureCarriers(mpi, sockets, memory, SteadyNow() + absl::Seconds(20));
    ASSERT_TRUE(why.ok()) << why.status();
    learned[rank] = *std::move(why);
  });
  return learned;
}

TEST(ChooseCarrierTest, MeasuresBoth) {
  EXPECT_EQ(MeasureThree(true), std::vector<std::string>(3));
  const std::vector<std::string> learned = MeasureThree(false);
  EXPECT_EQ(learned[0].substr(0, 30), "MPI was measured to be faster:");
  EXPECT_EQ(learned[1] + learned[2], "");
}

}  // namespace
}  // namespace hooke
