// Tests what the start of a large group costs, and that its messages between nodes go over the sockets that it makes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpi_group/call.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/operation.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/sockets/endpoint.h"
#include "mpi_group/sockets/host_addresses.h"
#include "mpi_group/sockets/open_files.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/counting_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

struct Placement {
  int ranks = 0;
  int nodes = 0;
  bool round_robin = false;

  int NodeOf(int rank) const { return round_robin ? rank % nodes : rank / (ranks / nodes); }
};

// The groups of ranks that are threads, on simulated nodes. All messages that do not go over sockets are counted.
class CountedGroups {
 public:
  explicit CountedGroups(const Placement& placement, GroupOptions options = {}) {
    options.tuning.between_nodes = Tuning::BetweenNodes::kSockets;
    options.tuning.slot_bytes = 4096;
    options.deadline = absl::Seconds(60);
    for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(placement.ranks)) {
      auto counting = std::make_unique<CountingTransport>(std::move(transport));
      counting_.push_back(counting.get());
      options.node = absl::StrCat("node ", placement.NodeOf(counting->rank()));
      groups_.push_back(MakeTransportGroup(std::move(counting), options));
    }
  }

  // Runs a call on all ranks, expects it to succeed, and returns what each rank has sent meanwhile.
  std::vector<Traffic> Run(const std::function<absl::Status(Group&)>& call) {
    std::vector<Traffic> sent(groups_.size());
    RunRanks(static_cast<int>(groups_.size()), [&](int rank) {
      const Traffic before = counting_[rank]->sent();
      EXPECT_EQ(call(*groups_[rank]), absl::OkStatus());
      const Traffic& after = counting_[rank]->sent();
      sent[rank] = {after.messages - before.messages, after.bytes - before.bytes};
    });
    return sent;
  }

 private:
  std::vector<CountingTransport*> counting_;
  std::vector<std::unique_ptr<Group>> groups_;
};

Traffic Total(const std::vector<Traffic>& of_ranks) {
  Traffic total;
  for (const Traffic& one : of_ranks) {
    total.messages += one.messages;
    total.bytes += one.bytes;
  }
  return total;
}

Traffic Most(const std::vector<Traffic>& of_ranks) {
  Traffic most;
  for (const Traffic& one : of_ranks) {
    most.messages = std::max(most.messages, one.messages);
    most.bytes = std::max(most.bytes, one.bytes);
  }
  return most;
}

uint64_t Levels(int n) {
  uint64_t levels = 0;
  while ((int64_t{1} << levels) < n) ++levels;
  return levels;
}

// The first barrier starts the group, and itself sends nothing but over sockets.
std::vector<Traffic> Start(const Placement& placement) {
  EXPECT_EQ(MakeRoomForFiles(4000), absl::OkStatus());
  CountedGroups groups(placement);
  const absl::Time begin = SteadyNow();
  std::vector<Traffic> sent = groups.Run([](Group& group) { return group.Barrier(); });
  const Traffic total = Total(sent);
  const Traffic most = Most(sent);
  std::cout << "start of " << placement.ranks << " ranks on " << placement.nodes << " nodes, "
            << (placement.round_robin ? "round robin" : "in blocks") << ": " << total.messages << " messages, "
            << total.bytes << " bytes; by one rank at most " << most.messages << " messages, " << most.bytes
            << " bytes; " << absl::ToInt64Milliseconds(SteadyNow() - begin) << " ms\n";
  return sent;
}

// The bytes that a rank sends on average while a group starts: those that do not depend on its size, those about nodes,
// and the records of the ranks that connect to each other.
uint64_t BytesPerRank(const Placement& placement) {
  Endpoint own;
  own.addresses = OwnAddresses();
  const uint64_t record = RecordOf(own).size();
  return 240 + FormatTuning({}).size() + 4 * Levels(placement.ranks) +
         record * (placement.nodes + Levels(placement.nodes));
}

// A rank sends at most 28 messages on average while a group starts, and the busiest one O(log n). The bytes of these
// messages stay within the bounds of groups/group_nodes.h.
TEST(GroupStartTest, CostIsBounded) {
  for (bool round_robin : {false, true}) {
    for (const auto& [ranks, nodes] : {std::pair<int, int>{64, 8}, {64, 16}, {256, 8}}) {
      const Placement placement = {ranks, nodes, round_robin};
      const std::vector<Traffic> sent = Start(placement);
      EXPECT_LE(Total(sent).messages, 28 * ranks);
      EXPECT_LE(Most(sent).messages, 16 * Levels(ranks));
      EXPECT_LE(Total(sent).bytes, ranks * BytesPerRank(placement));
      EXPECT_LE(Most(sent).bytes, Levels(ranks) * BytesPerRank(placement) + uint64_t{8} * ranks);
    }
  }
}

// With four times as many ranks on as many nodes, all ranks together send four times as much, not sixteen times.
TEST(GroupStartTest, CostIsNotQuadratic) {
  const Traffic few = Total(Start({64, 8, false}));
  const Traffic many = Total(Start({256, 8, false}));
  EXPECT_LT(many.messages, 4.5 * few.messages);
  EXPECT_LT(many.bytes, 4.5 * few.bytes);
}

std::vector<uint64_t> MessagesOf(const std::vector<Traffic>& sent) {
  std::vector<uint64_t> messages;
  messages.reserve(sent.size());
  for (const Traffic& one : sent) messages.push_back(one.messages);
  return messages;
}

// In a large group every operation of the default rules sends all its messages over sockets, whatever its size and
// whichever rank is the root.
TEST(GroupStartTest, LargeGroupUsesSocketsOnly) {
  constexpr int kRanks = 64;
  const std::vector<uint64_t> none(kRanks);
  for (bool round_robin : {false, true}) {
    CountedGroups groups({kRanks, 4, round_robin});
    groups.Run([](Group& group) { return group.Barrier(); });
    EXPECT_EQ(MessagesOf(groups.Run([](Group& group) { return group.Barrier(); })), none);
    for (size_t size : {5, 3000, 30'000}) {
      const auto expect_none = [&](const std::function<absl::Status(Group&, const TensorList&)>& call) {
        EXPECT_EQ(MessagesOf(groups.Run([&](Group& group) {
                    std::vector<float> values(size);
                    return call(group, TensorList(absl::MakeSpan(values)));
                  })),
                  none)
            << size << " values";
      };
      const Parts parts = EvenParts(size, kRanks);
      expect_none([](Group& group, const TensorList& values) { return group.AllReduce(values, ReduceOp::kSum); });
      expect_none([&](Group& group, const TensorList& values) { return group.AllGather(values, parts); });
      expect_none(
          [&](Group& group, const TensorList& values) { return group.ReduceScatter(values, parts, ReduceOp::kSum); });
      for (int root : {0, 17, 63}) {
        expect_none([root](Group& group, const TensorList& values) { return group.Broadcast(values, root); });
        expect_none(
            [root](Group& group, const TensorList& values) { return group.Reduce(values, ReduceOp::kMax, root); });
      }
    }
  }
}

// In a small group all pairs of ranks on different nodes have sockets, so algorithms of one level use them too.
TEST(GroupStartTest, SmallGroupConnectsAllPairs) {
  GroupOptions options;
  TuningRule ring;
  ring.operation = Operation::kAllReduce;
  ring.algorithm = Algorithm::kRing;
  options.tuning.rules = {ring};
  CountedGroups groups({8, 2, /*round_robin=*/true}, options);
  const auto all_reduce = [](Group& group) {
    std::vector<float> values(1000);
    return group.AllReduce(TensorList(absl::MakeSpan(values)), ReduceOp::kSum);
  };
  groups.Run(all_reduce);
  EXPECT_EQ(MessagesOf(groups.Run(all_reduce)), std::vector<uint64_t>(8));
}

}  // namespace
}  // namespace hooke
