// Tests the host's side of the staged group on a fake of CUDA: results, order and device. Needs no device.

#include "mpi_group/cuda/staged_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "mpi_group/call.h"
#include "mpi_group/cuda/fake_device_test.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using StagedGroupTest = FakeDeviceTest;
using testing::Contains;
using testing::Each;

// Runs body(group, rank) on staged groups of n ranks, in chunks so short that lists take several.
template <typename Body>
void RunStagedGroups(int n, const Body& body) {
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(n);
  RunRanks(n, [&](int rank) {
    StagedGroupOptions options;
    options.device = rank + 1;
    options.chunk_bytes = 64;
    options.deadline = absl::Seconds(60);
    const auto group = MakeStagedGroup(std::move(transports[rank]), options);
    ASSERT_TRUE(group.ok()) << group.status();
    body(**group, rank);
    // No rank leaves while others are in their last call.
    (*group)->Barrier().IgnoreError();
  });
}

// Sums of float32 and of float16, which are widened, a broadcast and an all-gather.
TEST_F(StagedGroupTest, ResultsAreThoseOfTheHost) {
  constexpr int kRanks = 3;
  constexpr uint64_t kValues = 101;
  RunStagedGroups(kRanks, [](DeviceGroup& group, int rank) {
    const absl::Span<float> values = Allocated<float>(group, kValues);
    for (uint64_t i = 0; i < kValues; ++i) values[i] = static_cast<float>(i) + static_cast<float>(rank);
    EXPECT_EQ(group.AllReduce(TensorList(values), ReduceOp::kSum), absl::OkStatus());
    for (uint64_t i = 0; i < kValues; ++i) EXPECT_EQ(values[i], 3 * static_cast<float>(i) + 3);
    const absl::Span<char> halves = Allocated<char>(group, 2 * kValues);
    const std::vector<float> large(kValues, 40000);
    Narrow(DataType::kFloat16, large, halves);
    EXPECT_EQ(group.AllReduce(TensorList(DataType::kFloat16, halves), ReduceOp::kMean), absl::OkStatus());
    std::vector<float> mean(kValues);
    Widen(DataType::kFloat16, halves, absl::MakeSpan(mean));
    EXPECT_THAT(mean, Each(40000));
    std::fill(values.begin(), values.end(), static_cast<float>(rank));
    EXPECT_EQ(group.AllGather(TensorList(values), EvenParts(kValues, kRanks)), absl::OkStatus());
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(values[kValues - 1], 2);
    EXPECT_EQ(group.Broadcast(TensorList(values), 1), absl::OkStatus());
    EXPECT_EQ(values[kValues / 2], 1);
  });
}

// Each rank's stream writes its values only once both groups' streams wait for an event. If a group did not wait, a
// copy would be done first, and the sum would be wrong. The caller's stream, in turn, waits for the group.
TEST_F(StagedGroupTest, GradientsThatAreStillBeingWrittenAreSummed) {
  FakeGate gate;
  RunStagedGroups(2, [&](DeviceGroup& group, int rank) {
    const absl::Span<float> values = Allocated<float>(group, 100);
    const Stream stream = StreamOfRank(rank);
    group.UseStream(stream.get());
    LaunchFake(stream.get(), [&gate, values, rank] {
      gate.Await([](const FakeState& state) { return state.waiting_for_events == 2 || state.copies > 0; });
      std::fill(values.begin(), values.end(), static_cast<float>(rank + 1));
    });
    EXPECT_EQ(group.AllReduce(TensorList(values), ReduceOp::kSum), absl::OkStatus());
    EXPECT_THAT(values, Each(3));
    EXPECT_THAT(LookAtFake().waiters, Contains(stream.get()));
    EXPECT_TRUE(AwaitIdleOrWaiting(stream.get()));
  });
}

TEST_F(StagedGroupTest, CallsLeaveOtherDevicesAlone) {
  RunRanks(1, [](int) {
    StagedGroupOptions options;
    options.device = 1;
    auto group = MakeStagedGroup(std::move(MakeInProcessTransports(1)[0]), options);
    ASSERT_TRUE(group.ok()) << group.status();
    ExpectCallsLeaveOtherDevicesAlone(*std::move(group));
  });
}

TEST_F(StagedGroupTest, TheStreamHasTheHighestPriority) {
  RunStagedGroups(2, [](DeviceGroup& /*group*/, int /*rank*/) {});
  EXPECT_THAT(LookAtFake().priorities, testing::ElementsAre(kFakeHighestPriority, kFakeHighestPriority));
}

// A rank that waits for another in vain gives up at its deadline.
TEST_F(StagedGroupTest, ACallEndsAtItsDeadline) {
  absl::Notification gave_up;
  RunStagedGroups(2, [&](DeviceGroup& group, int rank) {
    const absl::Span<float> values = Allocated<float>(group, 100);
    group.SetDeadline(absl::Milliseconds(200));
    if (rank != 0) {
      EXPECT_TRUE(gave_up.WaitForNotificationWithTimeout(kFakeWaitMax));
      return;
    }
    const absl::Time start = SteadyNow();
    const absl::Status status = group.AllReduce(TensorList(values), ReduceOp::kSum);
    gave_up.Notify();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_GE(SteadyNow() - start, absl::Milliseconds(200));
  });
}

}  // namespace
}  // namespace hooke
