// Tests the host's side of NcclGroup on fakes of CUDA and NCCL: results, order, device, and which calls it makes. Needs
// no device.

#include "mpi_group/cuda/nccl_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "mpi_group/call.h"
#include "mpi_group/cuda/fake_device_test.h"
#include "mpi_group/reduce/reduce.h"

namespace hooke {
namespace {

using NcclGroupTest = FakeDeviceTest;
using testing::Each;
using testing::ElementsAre;

constexpr int kRanks = 3;

// Value i of a rank. Sums are negative, and no multiples of the number of ranks.
template <typename T>
T Value(int rank, uint64_t i) {
  return static_cast<T>(static_cast<int>(i % 11) - 20 * (rank + 1) + (rank == 0 ? 1 : 0));
}

template <typename T>
void Fill(int rank, absl::Span<T> values) {
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = Value<T>(rank, i);
}

// The reduction of all ranks' values, as the host does it.
template <typename T>
std::vector<T> Reduced(ReduceOp op, uint64_t values) {
  std::vector<std::vector<T>> ranks(kRanks, std::vector<T>(values));
  std::vector<const char*> from;
  for (int rank = 0; rank < kRanks; ++rank) {
    Fill(rank, absl::MakeSpan(ranks[rank]));
    from.push_back(reinterpret_cast<const char*>(ranks[rank].data()));
  }
  std::vector<T> result(values);
  char* const to[] = {reinterpret_cast<char*>(result.data())};
  Reduce({DataTypeOf<T>(), op, kRanks}, from, to, values);
  return result;
}

template <typename T>
std::vector<T> Copied(absl::Span<const T> values, ValueRange range) {
  return {values.begin() + static_cast<ptrdiff_t>(range.begin), values.begin() + static_cast<ptrdiff_t>(range.end)};
}

// Compares each reduction of a list of two pieces with the host's result. One part of the reduce-scatter lies in both
// pieces, so a single call of ncclReduceScatter cannot take the parts.
template <typename T>
void CheckReductions(DeviceGroup& group, int rank) {
  constexpr uint64_t kValues = 30;
  const Parts parts = EvenParts(kValues, kRanks);
  const absl::Span<T> values = Allocated<T>(group, kValues);
  const TensorList list{values.first(13), values.subspan(13)};
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax}) {
    SCOPED_TRACE(NameOf(op));
    const std::vector<T> expected = Reduced<T>(op, kValues);
    const auto is_expected = [&](ValueRange range) { EXPECT_EQ(Copied<T>(values, range), Copied<T>(expected, range)); };
    Fill(rank, values);
    EXPECT_EQ(group.AllReduce(list, op), absl::OkStatus());
    is_expected({0, kValues});
    Fill(rank, values);
    EXPECT_EQ(group.Reduce(list, op, 1), absl::OkStatus());
    if (rank == 1) is_expected({0, kValues});
    Fill(rank, values);
    EXPECT_EQ(group.ReduceScatter(list, parts, op), absl::OkStatus());
    is_expected(parts[rank]);
  }
}

// Sums, means, minima and maxima are those of the host. Means of integers are rounded towards zero.
TEST_F(NcclGroupTest, ReductionsAreThoseOfTheHost) {
  RunNcclGroups(kRanks, [](DeviceGroup& group, int rank) {
    CheckReductions<float>(group, rank);
    CheckReductions<double>(group, rank);
    CheckReductions<int32_t>(group, rank);
    CheckReductions<int64_t>(group, rank);
  });
}

TEST_F(NcclGroupTest, BroadcastAndAllGatherCopy) {
  RunNcclGroups(kRanks, [](DeviceGroup& group, int rank) {
    constexpr uint64_t kValues = 31;
    const absl::Span<float> values = Allocated<float>(group, kValues);
    const TensorList list{values.first(3), values.subspan(3)};
    Fill(rank, values);
    EXPECT_EQ(group.Broadcast(list, 2), absl::OkStatus());
    for (uint64_t i = 0; i < kValues; ++i) EXPECT_EQ(values[i], Value<float>(2, i));
    const Parts parts = EvenParts(kValues, kRanks);
    Fill(rank, values);
    EXPECT_EQ(group.AllGather(list, parts), absl::OkStatus());
    for (int owner = 0; owner < kRanks; ++owner) {
      for (uint64_t i = parts[owner].begin; i < parts[owner].end; ++i) EXPECT_EQ(values[i], Value<float>(owner, i));
    }
    EXPECT_EQ(group.Barrier(), absl::OkStatus());
  });
}

// Even parts of one piece go through one native call, with the count of one part. Other parts go one by one.
TEST_F(NcclGroupTest, EvenPartsAreOneCallOfNccl) {
  RunNcclGroups(kRanks, [](DeviceGroup& group, int rank) {
    constexpr uint64_t kValues = uint64_t{3} * 10;
    const Parts parts = EvenParts(kValues, kRanks);
    const absl::Span<float> values = Allocated<float>(group, kValues);
    const TensorList list(values);
    Fill(rank, values);
    EXPECT_EQ(group.ReduceScatter(list, parts, ReduceOp::kSum), absl::OkStatus());
    const std::vector<float> sums = Reduced<float>(ReduceOp::kSum, kValues);
    EXPECT_EQ(Copied<float>(values, parts[rank]), Copied<float>(sums, parts[rank]));
    EXPECT_EQ(group.AllGather(list, parts), absl::OkStatus());
    EXPECT_EQ(Copied<float>(values, {0, kValues}), sums);
  });
  std::vector<std::string> calls = LookAtFake().calls;
  std::sort(calls.begin(), calls.end());
  EXPECT_THAT(calls, ElementsAre("AllGather 40", "AllGather 40", "AllGather 40", "ReduceScatter 10", "ReduceScatter 10",
                                 "ReduceScatter 10"));
  ResetFake();
  RunNcclGroups(kRanks, [](DeviceGroup& group, int /*rank*/) {
    const TensorList list(Allocated<float>(group, 31));
    EXPECT_EQ(group.AllGather(list, EvenParts(31, kRanks)), absl::OkStatus());
  });
  EXPECT_THAT(LookAtFake().calls, Each(testing::StartsWith("Broadcast")));
}

// The mean of float16 values whose sum is out of range.
TEST_F(NcclGroupTest, AMeanOfFloat16DoesNotOverflow) {
  RunNcclGroups(2, [](DeviceGroup& group, int /*rank*/) {
    constexpr uint64_t kValues = 10;
    const absl::Span<char> bytes = Allocated<char>(group, 2 * kValues);
    const std::vector<float> large(kValues, 40000);
    Narrow(DataType::kFloat16, large, bytes);
    EXPECT_EQ(group.AllReduce(TensorList(DataType::kFloat16, bytes), ReduceOp::kMean), absl::OkStatus());
    std::vector<float> mean(kValues);
    Widen(DataType::kFloat16, bytes, absl::MakeSpan(mean));
    EXPECT_EQ(mean, large);
  });
}

// Each rank's stream writes its values after the collective has been given to the device. If a collective did not wait
// for its caller's stream, it would be done first, with zeros.
void CheckThatLateValuesAreSummed(bool default_stream) {
  FakeGate gate;
  RunNcclGroups(2, [&](DeviceGroup& group, int rank) {
    const absl::Span<float> values = Allocated<float>(group, 10);
    const Stream stream = StreamOfRank(rank);
    if (!default_stream) group.UseStream(stream.get());
    LaunchFake(default_stream ? nullptr : stream.get(), [&gate, values, rank] {
      gate.Await([](const FakeState& state) { return state.waiting_for_events == 2 || state.collectives > 0; });
      std::fill(values.begin(), values.end(), static_cast<float>(rank + 1));
    });
    EXPECT_EQ(group.AllReduce(TensorList(values), ReduceOp::kSum), absl::OkStatus());
    EXPECT_THAT(values, Each(3));
  });
}

TEST_F(NcclGroupTest, GradientsThatAreStillBeingWrittenAreSummed) { CheckThatLateValuesAreSummed(false); }

TEST_F(NcclGroupTest, WithoutAStreamTheDefaultStreamIsTheCallers) { CheckThatLateValuesAreSummed(true); }

// Rank 0 is in an all-reduce that waits for rank 1. Work that rank 0's stream is given now sees the sum.
TEST_F(NcclGroupTest, LaterWorkOfTheCallersStreamSeesTheResult) {
  Stream stream;
  float seen = -1;
  float* first = nullptr;
  RunNcclGroups(2, [&](DeviceGroup& group, int rank) {
    const absl::Span<float> values = Allocated<float>(group, 10);
    if (rank == 0) {
      first = values.data();
      *first = 1;
      stream = StreamOfRank(0);
      group.UseStream(stream.get());
    } else {
      values[0] = 2;
      // The host has given the device everything when it asks whether the device is done.
      EXPECT_TRUE(AwaitFake([](const FakeState& state) { return state.waiting_for_ranks == 1 && state.queries > 0; }));
      LaunchFake(stream.get(), [&] { seen = *first; });
      EXPECT_TRUE(AwaitIdleOrWaiting(stream.get()));
    }
    EXPECT_EQ(group.AllReduce(TensorList(values), ReduceOp::kSum), absl::OkStatus());
    if (rank != 0) return;
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    stream.reset();
  });
  EXPECT_EQ(seen, 3);
}

TEST_F(NcclGroupTest, CallsLeaveOtherDevicesAlone) {
  const auto control = MakeInProcessGroups(1);
  RunRanks(1, [&](int) {
    NcclGroupOptions options;
    options.device = 1;
    auto group = MakeNcclGroup(*control[0], FakeNccl(), options);
    ASSERT_TRUE(group.ok()) << group.status();
    ExpectCallsLeaveOtherDevicesAlone(*std::move(group));
  });
}

TEST_F(NcclGroupTest, TheStreamHasTheHighestPriority) {
  RunNcclGroups(2, [](DeviceGroup& /*group*/, int /*rank*/) {});
  EXPECT_THAT(LookAtFake().priorities, ElementsAre(kFakeHighestPriority, kFakeHighestPriority));
}

// Memory comes from NCCL's allocator, zeroed, and is registered until the group ends. TearDown sees how it ends.
TEST_F(NcclGroupTest, MemoryIsRegistered) {
  RunNcclGroups(2, [](DeviceGroup& group, int /*rank*/) {
    EXPECT_THAT(Allocated<float>(group, 10), Each(0));
    EXPECT_THAT(Allocated<float>(group, 0), testing::IsEmpty());
    EXPECT_EQ(group.Barrier(), absl::OkStatus());
    const FakeState state = LookAtFake();
    EXPECT_EQ(state.registrations, 2);
    EXPECT_EQ(state.nccl_allocations, 2);
    EXPECT_EQ(group.Barrier(), absl::OkStatus());
  });
}

// If NCCL's allocator or its registration fails on one rank's device, no rank registers its memory. The group works all
// the same.
TEST_F(NcclGroupTest, MemoryIsRegisteredOnAllRanksOrOnNone) {
  for (bool allocation : {true, false}) {
    ResetFake();
    SetFake(
        [&](FakeState& state) { (allocation ? state.device_without_mem_alloc : state.device_without_register) = 2; });
    RunNcclGroups(2, [&](DeviceGroup& group, int /*rank*/) {
      const absl::Span<float> values = Allocated<float>(group, 10);
      EXPECT_THAT(values, Each(0));
      EXPECT_EQ(group.Barrier(), absl::OkStatus());
      const FakeState state = LookAtFake();
      EXPECT_EQ(state.registrations, 0);
      EXPECT_EQ(state.nccl_allocations, allocation ? 1 : 2);
      values[0] = 1;
      EXPECT_EQ(group.AllReduce(TensorList(values), ReduceOp::kSum), absl::OkStatus());
      EXPECT_EQ(values[0], 2);
    });
  }
}

// If the library is so old that it has no allocator and no registration, memory comes from CUDA's allocator.
TEST_F(NcclGroupTest, AnOldLibraryGivesPlainMemory) {
  RunRanks(1, [](int) {
    NcclCalls old = FakeNccl();
    old.mem_alloc = nullptr;
    old.mem_free = nullptr;
    old.comm_register = nullptr;
    old.comm_deregister = nullptr;
    const auto control = MakeInProcessGroups(1);
    NcclGroupOptions options;
    options.device = 1;
    const auto group = MakeNcclGroup(*control[0], old, options);
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_THAT(Allocated<float>(**group, 10), Each(0));
    EXPECT_EQ((*group)->Barrier(), absl::OkStatus());
  });
}

}  // namespace
}  // namespace hooke
