// All-reduces between nodes by a ring, in which nodes work while links carry earlier chunks. Chunks are short, so that
// few values make many. two_level_test.cc tests sums of 16-bit values, groups/transport_group_test.cc all other
// operations of groups.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpi_group/call.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/operation.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/forwarding_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/transport.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

using NodeNames = std::vector<std::string>;  // The name of each rank's node.
constexpr uint64_t kChunkBytes = 64;

// Calls leaves(rank) before a rank sends half a chunk or more to another node. After leaves has returned true, it is
// not called again.
class WatchedTransport : public ForwardingTransport {
 public:
  WatchedTransport(std::unique_ptr<Transport> transport, NodeNames nodes, std::function<bool(int rank)> leaves)
      : ForwardingTransport(std::move(transport)), nodes_(std::move(nodes)), leaves_(std::move(leaves)) {}

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (outgoing.bytes.size() >= kChunkBytes / 2 && nodes_[outgoing.to] != nodes_[rank()]) {
      if (leaves_ && leaves_(rank())) leaves_ = nullptr;
    }
    return ForwardingTransport::StartSend(outgoing);
  }

 private:
  const NodeNames nodes_;
  std::function<bool(int rank)> leaves_;
};

// Delays some messages to other nodes: they leave with the next message that is not late, or when their sender waits.
// Sockets do that when their buffers are full. The seed decides which messages are late.
class LateTransport : public ForwardingTransport {
 public:
  LateTransport(std::unique_ptr<Transport> transport, NodeNames nodes, uint64_t seed)
      : ForwardingTransport(std::move(transport)), nodes_(std::move(nodes)), random_(seed + rank()) {}

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    tickets_.push_back(std::nullopt);
    const int number = static_cast<int>(tickets_.size()) - 1;
    const bool late = !outgoing.bytes.empty() && nodes_[outgoing.to] != nodes_[rank()] && random_() % 2 == 0;
    held_.push_back({number, outgoing});
    if (!late) {
      absl::Status status = Leave();
      if (!status.ok()) return status;
    }
    return Ticket{kSends + number};
  }
  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    if (ticket.slot < kSends && ForwardingTransport::IsDone(ticket)) return ForwardingTransport::Wait(ticket, deadline);
    absl::Status status = Leave();
    if (!status.ok()) return status;
    return ForwardingTransport::Wait(ticket.slot < kSends ? ticket : *tickets_[ticket.slot - kSends], deadline);
  }
  bool IsDone(Ticket ticket) override {
    if (ticket.slot < kSends) return ForwardingTransport::IsDone(ticket);
    const std::optional<Ticket>& sent = tickets_[ticket.slot - kSends];
    return sent.has_value() && ForwardingTransport::IsDone(*sent);
  }

 private:
  static constexpr int kSends = 1 << 24;

  absl::Status Leave() {
    for (const auto& [number, outgoing] : held_) {
      const absl::StatusOr<Ticket> ticket = ForwardingTransport::StartSend(outgoing);
      if (!ticket.ok()) return ticket.status();
      tickets_[number] = *ticket;
    }
    held_.clear();
    return absl::OkStatus();
  }

  const NodeNames nodes_;
  std::mt19937_64 random_;
  std::vector<std::optional<Ticket>> tickets_;  // Tickets of sends that have left.
  std::vector<std::pair<int, Outgoing>> held_;
};

GroupOptions RingOptions() {
  GroupOptions options;
  options.tuning.between_nodes = Tuning::BetweenNodes::kMpi;
  options.tuning.slot_bytes = 4096;
  for (Algorithm algorithm : {Algorithm::kTwoLevel, Algorithm::kRing}) {
    TuningRule rule;
    rule.operation = Operation::kAllReduce;
    rule.algorithm = algorithm;
    rule.chunk_bytes = kChunkBytes;
    options.tuning.rules.push_back(rule);
  }
  return options;
}

std::vector<std::unique_ptr<Group>> MakeGroups(const NodeNames& nodes, const std::function<bool(int rank)>& leaves) {
  GroupOptions options = RingOptions();
  std::vector<std::unique_ptr<Group>> groups;
  for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(static_cast<int>(nodes.size()))) {
    options.node = nodes[groups.size()];
    groups.push_back(
        MakeTransportGroup(std::make_unique<WatchedTransport>(std::move(transport), nodes, leaves), options));
  }
  return groups;
}

// Small whole numbers, whose sums are exact.
float Value(int rank, uint64_t i) { return static_cast<float>((rank + 1) * (1 + i % 37)); }

// All-reduces a mean on one rank and checks the result.
void CheckMean(Group& group, absl::Span<float> values) {
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = Value(group.rank(), i);
  ASSERT_EQ(group.AllReduce(TensorList(values), ReduceOp::kMean), absl::OkStatus());
  ASSERT_EQ(group.LastAlgorithm(), "two-level");
  const int n = group.size();
  for (uint64_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < n; ++rank) sum += Value(rank, i);
    ASSERT_FLOAT_EQ(values[i], sum / static_cast<float>(n)) << i << " of " << values.size();
  }
}

// An all-reduce is right for nodes with equal and with different numbers of ranks. A node's ranks may be neighbours or
// not. The sizes include those around the points where a rank of a node has one value or one chunk more than another.
TEST(TwoLevelRingTest, AllSizes) {
  const NodeNames kNodes[] = {
      {"a", "a", "b", "b"},
      {"a", "b", "a", "b", "b"},
      {"a", "b", "b"},
      {"a", "a", "a", "b", "b", "b", "c", "c", "c"},
  };
  for (const NodeNames& nodes : kNodes) {
    SCOPED_TRACE(absl::StrJoin(nodes, " "));
    const std::vector<std::unique_ptr<Group>> groups = MakeGroups(nodes, nullptr);
    RunRanks(static_cast<int>(nodes.size()), [&](int rank) {
      constexpr uint64_t kMost = 700;
      const absl::StatusOr<absl::Span<float>> arena = AllocateSharedValues<float>(*groups[rank], kMost);
      ASSERT_EQ(arena.status(), absl::OkStatus());
      std::vector<float> own(kMost);
      for (uint64_t size = 1; size <= kMost; size += size < 300 ? 1 : 7) {
        CheckMean(*groups[rank], absl::MakeSpan(own).first(size));
        CheckMean(*groups[rank], arena->first(size));
      }
    });
  }
}

// When a rank's first values leave for another node, the last values of its slice still hold its own contribution: the
// node has not summed them yet.
TEST(TwoLevelRingTest, LinksDoNotWaitForTheWholeNode) {
  const NodeNames nodes = {"a", "a", "b", "b"};
  constexpr uint64_t kValues = 4096;
  for (bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "arena" : "private");
    std::vector<absl::Span<float>> values(nodes.size());
    std::vector<int> early(nodes.size(), 0);
    std::vector<std::unique_ptr<Group>> groups = MakeGroups(nodes, [&](int rank) {
      if (values[rank].empty()) return false;
      const Parts slices = EvenParts(kValues, 2);
      const uint64_t last = slices[rank % 2].end - 1;
      early[rank] = values[rank][last] == Value(rank, last) ? 1 : 0;
      return true;
    });
    RunRanks(static_cast<int>(nodes.size()), [&](int rank) {
      std::vector<float> own(kValues);
      const absl::StatusOr<absl::Span<float>> arena = AllocateSharedValues<float>(*groups[rank], kValues);
      ASSERT_EQ(arena.status(), absl::OkStatus());
      values[rank] = shared ? *arena : absl::MakeSpan(own);
      CheckMean(*groups[rank], values[rank]);
    });
    EXPECT_EQ(early, std::vector<int>(nodes.size(), 1));
  }
}

// Late messages cause no deadlock: no rank waits inside its node for a rank that needs its message.
TEST(TwoLevelRingTest, LateMessages) {
  const NodeNames nodes = {"a", "a", "b", "b"};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    GroupOptions options = RingOptions();
    options.deadline = absl::Seconds(10);
    std::vector<std::unique_ptr<Group>> groups;
    for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(static_cast<int>(nodes.size()))) {
      options.node = nodes[groups.size()];
      groups.push_back(
          MakeTransportGroup(std::make_unique<LateTransport>(std::move(transport), nodes, seed * 8), options));
    }
    RunRanks(static_cast<int>(nodes.size()), [&](int rank) {
      std::vector<float> own(1000);
      CheckMean(*groups[rank], absl::MakeSpan(own));
    });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace hooke
