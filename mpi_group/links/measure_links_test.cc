#include "mpi_group/links/measure_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/forwarding_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

absl::Time Soon() { return SteadyNow() + absl::Seconds(20); }

// In each round the pairs are disjoint, and each rank meets each other one exactly once in all rounds.
TEST(MeasureLinksTest, RoundsArePairings) {
  for (int ranks = 1; ranks <= 33; ++ranks) {
    std::set<std::pair<int, int>> met;
    const int rounds = ranks + ranks % 2 - 1;
    for (int round = 0; round < rounds; ++round) {
      for (int rank = 0; rank < ranks; ++rank) {
        const int partner = PartnerInRound(rank, ranks, round);
        if (partner < 0) continue;
        ASSERT_NE(partner, rank);
        ASSERT_EQ(PartnerInRound(partner, ranks, round), rank) << ranks << " ranks, round " << round;
        met.insert({rank, partner});
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(ranks) * (ranks - 1));
  }
}

// Time that passes only by messages.
class VirtualClock {
 public:
  absl::Time Now() const { return absl::UnixEpoch() + absl::Nanoseconds(nanoseconds_.load()); }
  void Pass(absl::Duration time) { nanoseconds_ += absl::ToInt64Nanoseconds(time); }

 private:
  std::atomic<int64_t> nanoseconds_ = 0;
};

struct Link {
  absl::Duration latency;
  double bytes_per_second = 0;
};

// Each message takes the time that it would take on the link.
class TimedTransport final : public ForwardingTransport {
 public:
  TimedTransport(std::unique_ptr<Transport> transport, const Link& link, VirtualClock& clock)
      : ForwardingTransport(std::move(transport)), link_(link), clock_(clock) {}

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (!outgoing.bytes.empty()) {
      clock_.Pass(link_.latency + absl::Seconds(static_cast<double>(outgoing.bytes.size()) / link_.bytes_per_second));
      sent_ += outgoing.bytes.size();
    }
    return ForwardingTransport::StartSend(outgoing);
  }

  uint64_t sent() const { return sent_; }

 private:
  const Link link_;
  VirtualClock& clock_;
  uint64_t sent_ = 0;
};

struct Measured {
  std::vector<std::vector<LinkFigures>> of_rank;
  std::vector<uint64_t> sent;
  absl::Duration time;
};

Measured Measure(int ranks, const Link& link) {
  VirtualClock clock;
  std::vector<std::unique_ptr<TimedTransport>> transports;
  for (auto& transport : MakeInProcessTransports(ranks)) {
    transports.push_back(std::make_unique<TimedTransport>(std::move(transport), link, clock));
  }
  Measured measured;
  measured.of_rank.resize(ranks);
  RunRanks(ranks, [&](int rank) {
    std::vector<char> memory;
    absl::StatusOr<std::vector<LinkFigures>> links =
        MeasureLinks(*transports[rank], memory, Soon(), [&clock] { return clock.Now(); });
    ASSERT_TRUE(links.ok()) << links.status();
    measured.of_rank[rank] = *std::move(links);
  });
  for (const auto& transport : transports) measured.sent.push_back(transport->sent());
  measured.time = clock.Now() - absl::UnixEpoch();
  return measured;
}

// The figures are those of the link, and the measurement takes less than 0.1 s.
TEST(MeasureLinksTest, FindsLatencyAndRate) {
  for (const Link& link : {Link{absl::Microseconds(50), 125e6}, Link{absl::Microseconds(5), 12.5e9},
                           Link{absl::Milliseconds(1), 1.25e9}, Link{absl::Microseconds(200), 12.5e6}}) {
    const Measured measured = Measure(2, link);
    ASSERT_EQ(measured.of_rank[0].size(), 1u);
    EXPECT_TRUE(measured.of_rank[1].empty());
    const LinkFigures& figures = measured.of_rank[0][0];
    EXPECT_EQ(figures.peer, 1);
    EXPECT_NEAR(absl::ToDoubleMicroseconds(figures.round_trip), 2 * absl::ToDoubleMicroseconds(link.latency), 3);
    EXPECT_GT(figures.bytes_per_second, link.bytes_per_second / 1.5);
    EXPECT_LT(figures.bytes_per_second, link.bytes_per_second * 1.01);
    EXPECT_LT(measured.time, absl::Milliseconds(100));
  }
}

// If the round trip is long, no burst is long beside it, and the bandwidth is not known.
TEST(MeasureLinksTest, SaysNothingWhereItCannotTell) {
  const Measured measured = Measure(2, {absl::Milliseconds(50), 12.5e9});
  EXPECT_EQ(measured.of_rank[0][0].bytes_per_second, 0);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(measured.of_rank[0][0].round_trip), 100, 1);
}

// Each pair is measured once, by its lower rank.
TEST(MeasureLinksTest, EachPairOnce) {
  const Measured measured = Measure(5, {absl::Microseconds(5), 10e9});
  std::set<std::pair<int, int>> pairs;
  for (int rank = 0; rank < 5; ++rank) {
    for (const LinkFigures& link : measured.of_rank[rank]) {
      EXPECT_LT(rank, link.peer);
      EXPECT_TRUE(pairs.insert({rank, link.peer}).second);
      EXPECT_GT(link.round_trip, absl::ZeroDuration());
    }
  }
  EXPECT_EQ(pairs.size(), 10u);
}

// On a slow link the bursts stay short, so that a group does not start late.
TEST(MeasureLinksTest, SendsLittleOverASlowLink) {
  const Measured measured = Measure(2, {absl::Microseconds(50), 1e6});
  EXPECT_LE(measured.sent[0], 64u << 10);
  EXPECT_GT(measured.of_rank[0][0].bytes_per_second, 0);
  EXPECT_LE(measured.of_rank[0][0].bytes_per_second, 1.01e6);
}

// If a rank is missing, the others' measurement ends at the deadline with an error that names it.
TEST(MeasureLinksTest, AMissingRankIsAnError) {
  const auto transports = MakeInProcessTransports(2);
  std::vector<char> memory;
  const auto links = MeasureLinks(*transports[0], memory, SteadyNow() + absl::Milliseconds(50));
  EXPECT_EQ(links.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(links.status().message()), testing::HasSubstr("rank 1"));
}

}  // namespace
}  // namespace hooke
