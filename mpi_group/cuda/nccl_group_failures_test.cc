// Tests on fakes of CUDA and NCCL how an NcclGroup fails: who learns of it, how soon, and what is left on the device.
// Needs no device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "mpi_group/cuda/fake_device_test.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

using NcclGroupFailuresTest = FakeDeviceTest;
using testing::HasSubstr;

constexpr int kRanks = 3;

// Makes a group, and returns the status that each rank gets. Rank r's device is devices[r].
std::vector<absl::Status> StatusesOfMaking(const std::vector<absl::StatusOr<NcclCalls>>& nccl,
                                           const std::vector<int>& devices) {
  const int n = static_cast<int>(nccl.size());
  const auto control = MakeInProcessGroups(n);
  std::vector<absl::Status> made(n);
  RunRanks(n, [&](int rank) {
    NcclGroupOptions options;
    options.device = devices[rank];
    made[rank] = MakeNcclGroup(*control[rank], nccl[rank], options).status();
  });
  return made;
}

void ExpectOnAllRanks(const std::vector<absl::Status>& made, absl::StatusCode code, const std::string& reason) {
  for (const absl::Status& status : made) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
  }
}

// All ranks learn soon why one cannot take part: rank 0 gets no id from NCCL, or a rank lacks the library or a device.
TEST_F(NcclGroupFailuresTest, AllRanksLearnWhyThereIsNoGroup) {
  const absl::Time start = SteadyNow();
  SetFake([](FakeState& state) { state.unique_id_fails = true; });
  ExpectOnAllRanks(StatusesOfMaking({FakeNccl(), FakeNccl(), FakeNccl()}, {1, 2, 3}), absl::StatusCode::kInternal,
                   "ncclGetUniqueId: an error of the fake NCCL");
  SetFake([](FakeState& state) { state.unique_id_fails = false; });
  const absl::Status missing = absl::FailedPreconditionError("no library here");
  for (int without = 0; without < kRanks; ++without) {
    std::vector<absl::StatusOr<NcclCalls>> nccl(kRanks, FakeNccl());
    nccl[without] = missing;
    ExpectOnAllRanks(StatusesOfMaking(nccl, {1, 2, 3}), absl::StatusCode::kFailedPrecondition, "no library here");
    std::vector<int> devices = {1, 2, 3};
    devices[without] = 99;
    ExpectOnAllRanks(StatusesOfMaking({FakeNccl(), FakeNccl(), FakeNccl()}, devices),
                     absl::StatusCode::kFailedPrecondition, "device 99: this node has 8");
  }
  EXPECT_LT(SteadyNow() - start, absl::Seconds(25));
}

// A call that waits for another rank in vain ends at its deadline. At once no kernel of it is on the device any more,
// although the group still exists. Later calls return the same error.
TEST_F(NcclGroupFailuresTest, ATimedOutGroupLeavesNoKernelBehind) {
  RunNcclGroups(2, [](DeviceGroup& group, int rank) {
    if (rank != 0) return;
    const TensorList list(DataType::kFloat32, absl::Span<char>());
    group.SetDeadline(absl::Milliseconds(200));
    const absl::Time start = SteadyNow();
    const absl::Status status = group.Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_GE(SteadyNow() - start, absl::Milliseconds(200));
    EXPECT_EQ(LookAtFake().aborts, 1);
    EXPECT_TRUE(AwaitFake([](const FakeState& state) { return state.waiting_for_ranks == 0; }));
    EXPECT_EQ(group.Barrier(), status);
    EXPECT_EQ(group.AllReduce(list, ReduceOp::kSum), status);
    EXPECT_EQ(group.AllocateShared(8).status(), status);
    EXPECT_EQ(LookAtFake().aborts, 1);
  });
}

// An error that NCCL meets while a call waits ends the call, long before its deadline.
TEST_F(NcclGroupFailuresTest, AnAsynchronousErrorEndsTheCall) {
  RunNcclGroups(2, [](DeviceGroup& group, int rank) {
    if (rank == 1) {
      EXPECT_TRUE(AwaitFake([](const FakeState& state) { return state.waiting_for_ranks == 1; }));
      SetFake([](FakeState& state) { state.rank_with_error = 0; });
      EXPECT_TRUE(AwaitFake([](const FakeState& state) { return state.aborts == 1; }));
      return;
    }
    const absl::Time start = SteadyNow();
    const absl::Status status = group.Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("NCCL: an error of the fake NCCL"));
    EXPECT_LT(SteadyNow() - start, absl::Seconds(25));
  });
}

// If a rank has no memory, all ranks learn which one, and their communicators are gone.
TEST_F(NcclGroupFailuresTest, AllRanksLearnWhoHasNoMemory) {
  RunNcclGroups(2, [](DeviceGroup& group, int rank) {
    EXPECT_EQ(Allocated<float>(group, 10).size(), 10);
    const absl::Status status = group.AllocateShared(rank == 1 ? uint64_t{1} << 40 : 100).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cudaMalloc of 1099511627776 bytes"));
    EXPECT_EQ(absl::StrContains(status.message(), "rank 1: "), rank == 0) << status;
    EXPECT_EQ(group.Barrier(), status);
    EXPECT_TRUE(AwaitFake([](const FakeState& state) { return state.aborts == 2; }));
  });
}

// Values in host memory, and a root that does not exist, end the group, because the other ranks do not learn of it.
TEST_F(NcclGroupFailuresTest, WrongArgumentsEndTheGroup) {
  for (bool host_memory : {true, false}) {
    RunNcclGroups(1, [&](DeviceGroup& group, int /*rank*/) {
      std::vector<float> values(10);
      const TensorList list(absl::MakeSpan(values));
      const absl::Status status = host_memory ? group.AllReduce(list, ReduceOp::kSum) : group.Broadcast(list, 1);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_EQ(group.Barrier(), status);
    });
  }
  EXPECT_EQ(LookAtFake().aborts, 2);
}

}  // namespace
}  // namespace hooke
