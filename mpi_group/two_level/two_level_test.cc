// Tests sums of 16-bit values between nodes, with values whose sum is wrong if it is rounded more than once.
// groups/transport_group_test.cc tests what holds for all types.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/call.h"
#include "mpi_group/data_type.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/transport_group.h"
#include "mpi_group/operation.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/transport/forwarding_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/transport.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

using NodeNames = std::vector<std::string>;  // The name of each rank's node.

const std::vector<NodeNames>& AllNodes() {
  static const auto* const nodes = new std::vector<NodeNames>{
      {"a", "a", "b", "b"},
      {"a", "b", "b", "a", "b"},
      {"a", "a", "b", "b", "c", "c", "c"},
      {"a", "a", "a", "a", "b", "b", "b", "b"},
  };
  return *nodes;
}

// Counts the bytes that go to other nodes.
class CountingTransport : public ForwardingTransport {
 public:
  CountingTransport(std::unique_ptr<Transport> transport, NodeNames nodes, std::atomic<uint64_t>* bytes)
      : ForwardingTransport(std::move(transport)), nodes_(std::move(nodes)), bytes_(bytes) {}

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    if (!outgoing.bytes.empty() && nodes_[outgoing.to] != nodes_[rank()]) *bytes_ += outgoing.bytes.size();
    return ForwardingTransport::StartSend(outgoing);
  }

 private:
  const NodeNames nodes_;
  std::atomic<uint64_t>* const bytes_;
};

// The groups of ranks on several simulated nodes.
struct Groups {
  explicit Groups(const NodeNames& nodes, GroupOptions options = {}) {
    options.tuning.between_nodes = Tuning::BetweenNodes::kMpi;
    for (std::unique_ptr<Transport>& transport : MakeInProcessTransports(static_cast<int>(nodes.size()))) {
      options.node = nodes[of_rank.size()];
      of_rank.push_back(
          MakeTransportGroup(std::make_unique<CountingTransport>(std::move(transport), nodes, &bytes), options));
    }
  }
  int size() const { return static_cast<int>(of_rank.size()); }

  std::atomic<uint64_t> bytes{0};  // Bytes sent between nodes.
  std::vector<std::unique_ptr<Group>> of_rank;
};

// A value to which adding 1 is lost in rounding: 2048 + 1 is 2048 in float16, 256 + 1 is 256 in bfloat16.
float Big(DataType type) { return type == DataType::kFloat16 ? 2048 : 256; }

uint16_t Rounded(DataType type, float value) {
  uint16_t bits = 0;
  Narrow(type, absl::MakeConstSpan(&value, 1), MutableBytesOf(absl::MakeSpan(&bits, 1)));
  return bits;
}

// Value i is big on rank i % ranks and one on all others, so that every order of additions is tried.
void Fill(DataType type, int rank, int ranks, absl::Span<uint16_t> values) {
  const uint16_t big = Rounded(type, Big(type));
  const uint16_t one = Rounded(type, 1);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % ranks == static_cast<size_t>(rank) ? big : one;
}

uint16_t Wanted(DataType type, ReduceOp op, int ranks) {
  const float sum = Big(type) + static_cast<float>(ranks - 1);
  return Rounded(type, op == ReduceOp::kMean ? sum * (1 / static_cast<float>(ranks)) : sum);
}

void ExpectAll(absl::Span<const uint16_t> values, uint16_t wanted, const char* operation) {
  const auto wrong = std::find_if(values.begin(), values.end(), [wanted](uint16_t value) { return value != wanted; });
  EXPECT_TRUE(wrong == values.end()) << operation << ": " << *wrong << " and not " << wanted << " at "
                                     << wrong - values.begin();
}

// Calls the summing collectives on one rank and checks the results.
void CheckSums(Group& group, DataType type, absl::Span<uint16_t> values) {
  const int n = group.size();
  const TensorList list(type, MutableBytesOf(values));
  const Parts parts = EvenParts(values.size(), n);
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
    SCOPED_TRACE(absl::StrCat(values.size(), " of ", NameOf(type), ", ", NameOf(op)));
    const uint16_t wanted = Wanted(type, op, n);
    Fill(type, group.rank(), n, values);
    ASSERT_EQ(group.AllReduce(list, op), absl::OkStatus());
    ASSERT_EQ(group.LastAlgorithm(), "two-level");
    ExpectAll(values, wanted, "all-reduce");
    Fill(type, group.rank(), n, values);
    ASSERT_EQ(group.ReduceScatter(list, parts, op), absl::OkStatus());
    const ValueRange own = parts[group.rank()];
    ExpectAll(values.subspan(own.begin, own.size()), wanted, "reduce-scatter");
    Fill(type, group.rank(), n, values);
    ASSERT_EQ(group.Reduce(list, op, n - 1), absl::OkStatus());
    if (group.rank() == n - 1) ExpectAll(values, wanted, "reduce");
  }
}

void CheckSumsOfAllSizes(const NodeNames& nodes, const GroupOptions& options, std::initializer_list<uint64_t> sizes) {
  SCOPED_TRACE(absl::StrCat(nodes.size(), " ranks"));
  const Groups groups(nodes, options);
  RunRanks(groups.size(), [&](int rank) {
    Group& group = *groups.of_rank[rank];
    for (uint64_t size : sizes) {
      const absl::StatusOr<absl::Span<uint16_t>> arena = AllocateSharedValues<uint16_t>(group, size);
      ASSERT_EQ(arena.status(), absl::OkStatus());
      std::vector<uint16_t> own(size);
      for (DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
        CheckSums(group, type, *arena);
        CheckSums(group, type, absl::MakeSpan(own));
      }
    }
  });
}

// A sum is exact until it is rounded once, and has the same bits on all ranks. That holds for every size, for nodes
// with equal and different numbers of ranks, and for values in shared and in ordinary memory.
TEST(TwoLevelSumsTest, AreRoundedOnce) {
  for (const NodeNames& nodes : AllNodes()) CheckSumsOfAllSizes(nodes, {}, {1, 3, 20, 12345, 300001});
}

// Every algorithm between nodes rounds a sum only once, also with short chunks.
TEST(TwoLevelSumsTest, AreRoundedOnceByEveryAlgorithm) {
  for (Algorithm algorithm : {Algorithm::kReference, Algorithm::kRing, Algorithm::kPairwise,
                              Algorithm::kRecursiveDoubling, Algorithm::kHalvingDoubling}) {
    SCOPED_TRACE(NameOf(algorithm));
    GroupOptions options;
    options.tuning.slot_bytes = 4096;
    for (Algorithm level : {Algorithm::kTwoLevel, algorithm}) {
      TuningRule rule;
      rule.operation = Operation::kAllReduce;
      rule.algorithm = level;
      rule.chunk_bytes = 1024;
      options.tuning.rules.push_back(rule);
    }
    for (const NodeNames& nodes : AllNodes()) CheckSumsOfAllSizes(nodes, options, {1, 5, 1009, 5003});
  }
}

// A node sends 3(h-1)/h of the bytes in an all-reduce, as sums travel as float32 and results as 16 bits. Neither the
// number of its ranks nor the place of the values changes that.
TEST(TwoLevelSumsTest, BytesBetweenNodes) {
  constexpr uint64_t kValues = uint64_t{240} << 12;  // Divides evenly among the drivers of a node, and each driver's
                                                     // slice among the nodes, in all cases below.
  constexpr uint64_t kBytes = 2 * kValues;
  const struct {
    NodeNames nodes;
    uint64_t h;
  } kCases[] = {
      {{"a", "a", "b", "b"}, 2}, {{"a", "a", "b", "b", "c", "c"}, 3}, {{"a", "a", "a", "a", "b", "b", "b", "b"}, 2}};
  for (const auto& test : kCases) {
    SCOPED_TRACE(absl::StrCat(test.nodes.size(), " ranks"));
    Groups groups(test.nodes);
    std::vector<std::vector<uint16_t>> own(groups.size(), std::vector<uint16_t>(kValues));
    std::vector<TensorList> lists(groups.size());
    const auto bytes_of = [&](const auto& call) {
      const uint64_t before = groups.bytes;
      RunRanks(groups.size(), [&](int rank) { EXPECT_EQ(call(*groups.of_rank[rank], lists[rank]), absl::OkStatus()); });
      return groups.bytes - before;
    };
    for (bool shared : {false, true}) {
      RunRanks(groups.size(), [&](int rank) {
        const absl::StatusOr<absl::Span<uint16_t>> arena =
            AllocateSharedValues<uint16_t>(*groups.of_rank[rank], kValues);
        ASSERT_EQ(arena.status(), absl::OkStatus());
        lists[rank] = TensorList(DataType::kBFloat16, MutableBytesOf(shared ? *arena : absl::MakeSpan(own[rank])));
      });
      EXPECT_EQ(bytes_of([](Group& group, const TensorList& list) { return group.AllReduce(list, ReduceOp::kSum); }),
                test.h * 3 * (test.h - 1) * kBytes / test.h);
    }
  }
}

}  // namespace
}  // namespace hooke
