#include "mpi_group/links/measure_links.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"

namespace hooke {
namespace {

constexpr int kRoundTrips = 20;
constexpr uint64_t kFirstBurst = 16 << 10;
constexpr uint64_t kLastBurst = 4 << 20;
constexpr uint64_t kGrowth = 4;
// Bursts of the last size. One may have waited for a core.
constexpr int kTries = 3;
// Round trips take at most this part of the time, so that some is left for bursts.
constexpr double kRoundTripShare = 0.25;

// The lower rank of a pair says what comes next. The higher one answers each order once it has all its bytes.
struct Order {
  uint64_t burst = 0;  // Bytes that follow this order.
  uint64_t last = 0;   // 1: no order follows.
};
constexpr size_t kMemory = sizeof(Order) + kLastBurst;

// One pair's measurement, as one of the two sees it. `memory` has kMemory bytes.
class Pair {
 public:
  Pair(Transport& nodes, int peer, absl::Span<char> memory, absl::Time deadline, absl::FunctionRef<absl::Time()> now)
      : nodes_(nodes),
        peer_(peer),
        message_(memory.first(sizeof(Order))),
        burst_(memory.subspan(sizeof(Order))),
        deadline_(deadline),
        now_(now) {}

  absl::StatusOr<LinkFigures> Measure(absl::Duration limit) {
    // The first message waits until the other rank has come, and for the connection if there is none yet.
    const absl::StatusOr<absl::Duration> first = Send({});
    if (!first.ok()) return first.status();
    const absl::Time begin = now_();
    LinkFigures figures;
    figures.peer = peer_;
    figures.round_trip = absl::InfiniteDuration();
    for (int i = 0; i < kRoundTrips; ++i) {
      const absl::StatusOr<absl::Duration> time = Send({});
      if (!time.ok()) return time.status();
      figures.round_trip = std::min(figures.round_trip, *time);
      if (now_() - begin > kRoundTripShare * limit) break;
    }
    int tries = 0;
    for (uint64_t bytes = kFirstBurst; tries < kTries;) {
      const absl::StatusOr<absl::Duration> time = Send({bytes, 0});
      if (!time.ok()) return time.status();
      const double bandwidth = BandwidthOf(bytes, *time, figures.round_trip);
      figures.bytes_per_second = tries == 0 ? bandwidth : std::max(figures.bytes_per_second, bandwidth);
      const absl::Duration left = limit - (now_() - begin);
      if (bytes < kLastBurst && kGrowth * *time <= left) {
        bytes *= kGrowth;
        tries = 0;
      } else {
        tries = *time <= left ? tries + 1 : kTries;
      }
    }
    const absl::StatusOr<absl::Duration> end = Send({0, 1});
    return end.ok() ? absl::StatusOr<LinkFigures>(figures) : end.status();
  }

  absl::Status Answer() {
    Order order;
    while (order.last == 0) {
      absl::Status status = nodes_.Receive({peer_, message_}, deadline_);
      if (!status.ok()) return status;
      std::memcpy(&order, message_.data(), sizeof(order));
      // A message must not make this rank write beyond its memory.
      if (order.burst > burst_.size()) return absl::InternalError("a burst between nodes is too long");
      status = nodes_.Receive({peer_, burst_.first(order.burst)}, deadline_);
      if (status.ok()) status = nodes_.Send({peer_, message_}, deadline_);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // Returns the time from the start of sending until the answer is here.
  absl::StatusOr<absl::Duration> Send(const Order& order) {
    std::memcpy(message_.data(), &order, sizeof(order));
    const absl::Time begin = now_();
    absl::Status status = nodes_.Send({peer_, message_}, deadline_);
    if (status.ok()) status = nodes_.Send({peer_, burst_.first(order.burst)}, deadline_);
    if (status.ok()) status = nodes_.Receive({peer_, message_}, deadline_);
    if (!status.ok()) return status;
    return now_() - begin;
  }

  // 0 if the burst was so short that its time is mostly the round trip.
  static double BandwidthOf(uint64_t bytes, absl::Duration time, absl::Duration round_trip) {
    const absl::Duration sending = time - round_trip;
    if (sending < round_trip || sending <= absl::ZeroDuration()) return 0;
    return static_cast<double>(bytes) / absl::ToDoubleSeconds(sending);
  }

  Transport& nodes_;
  const int peer_;
  const absl::Span<char> message_;
  const absl::Span<char> burst_;
  const absl::Time deadline_;
  const absl::FunctionRef<absl::Time()> now_;
};

}  // namespace

// The circle method: the last rank stays, and the others move on by one place in each round.
int PartnerInRound(int rank, int ranks, int round) {
  const int circle = ranks + ranks % 2 - 1;
  int partner = circle;
  if (rank == circle) {
    // Its partner is the one that would meet itself: 2 * partner = round (mod circle), and circle is odd.
    partner = static_cast<int>(int64_t{round} * (circle + 1) / 2 % circle);
  } else if (const int other = ((round - rank) % circle + circle) % circle; other != rank) {
    partner = other;
  }
  return partner < ranks ? partner : -1;
}

absl::StatusOr<std::vector<LinkFigures>> MeasureLinks(Transport& nodes, std::vector<char>& memory, absl::Time deadline,
                                                      absl::FunctionRef<absl::Time()> now) {
  memory.resize(kMemory);  // Touches all pages before time counts.
  std::vector<LinkFigures> measured;
  const int rounds = std::min(nodes.size() + nodes.size() % 2 - 1, kMeasuredPeersMax);
  for (int round = 0; round < rounds; ++round) {
    const int partner = PartnerInRound(nodes.rank(), nodes.size(), round);
    if (partner < 0) continue;
    Pair pair(nodes, partner, absl::MakeSpan(memory), deadline, now);
    if (partner < nodes.rank()) {
      absl::Status status = pair.Answer();
      if (!status.ok()) return status;
      continue;
    }
    absl::StatusOr<LinkFigures> figures = pair.Measure(kMeasureLinksFor / rounds);
    if (!figures.ok()) return figures.status();
    measured.push_back(*figures);
  }
  return measured;
}

}  // namespace hooke
