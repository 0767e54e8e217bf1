#ifndef HOOKE_MPI_GROUP_CUDA_FAKE_DEVICE_TEST_H_
#define HOOKE_MPI_GROUP_CUDA_FAKE_DEVICE_TEST_H_

// Shared by the tests of device groups on fakes. Rank r has device r + 1, so that nothing has a reason to touch device
// 0.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpi_group/cuda/device_group.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/fake_cuda.h"
#include "mpi_group/cuda/fake_nccl.h"
#include "mpi_group/cuda/nccl_group.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"

namespace hooke {

class FakeDeviceTest : public testing::Test {
 protected:
  void SetUp() override { ResetFake(); }

  // No test may end with a misuse, a communicator, a registration, a collective under way, or a context on device 0.
  void TearDown() override {
    EXPECT_TRUE(AwaitFake([](const FakeState& state) { return state.waiting_for_ranks == 0; }));
    const FakeState state = LookAtFake();
    EXPECT_EQ(state.misuses, std::vector<std::string>());
    EXPECT_EQ(state.communicators, 0);
    EXPECT_EQ(state.registrations, 0);
    EXPECT_FALSE(HasFakeContext(0));
  }
};

// Runs body(group, rank) on NCCL groups of n ranks.
template <typename Body>
void RunNcclGroups(int n, const Body& body) {
  const auto control = MakeInProcessGroups(n);
  RunRanks(n, [&](int rank) {
    NcclGroupOptions options;
    options.device = rank + 1;
    options.deadline = absl::Seconds(60);
    const auto group = MakeNcclGroup(*control[rank], FakeNccl(), options);
    ASSERT_TRUE(group.ok()) << group.status();
    body(**group, rank);
  });
}

// Values of the group in device memory. They are 0 at first.
template <typename T>
absl::Span<T> Allocated(Group& group, uint64_t values) {
  const auto memory = AllocateSharedValues<T>(group, values);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return memory.ok() ? *memory : absl::Span<T>();
}

// The work of several ranks' streams waits here for one state of the fakes. Once one of them has seen it, all go on,
// for the first to go on changes the state.
class FakeGate {
 public:
  void Await(const std::function<bool(const FakeState&)>& reached) {
    AwaitFake([&](const FakeState& state) {
      open_ = open_ || reached(state);
      return open_;
    });
  }

 private:
  bool open_ = false;  // Guarded by FakeMutex().
};

// A stream of a rank, as a program makes one.
inline Stream StreamOfRank(int rank) {
  EXPECT_EQ(cudaSetDevice(rank + 1), cudaSuccess);
  absl::StatusOr<Stream> stream = MakeStream();
  EXPECT_TRUE(stream.ok()) << stream.status();
  return *std::move(stream);
}

// Expects that no call of a group of one rank on device 1, nor its end, touches another device. It makes each call in a
// thread that has not chosen a device, whose current one is 0, and in one that has chosen a device, which is current
// again afterwards.
inline void ExpectCallsLeaveOtherDevicesAlone(std::unique_ptr<DeviceGroup> group) {
  constexpr int kChosen = 7;
  absl::Span<float> values;
  RunRanks(1, [&](int) { values = Allocated<float>(*group, 10); });
  const TensorList list(values);
  const std::vector<ValueRange> all = {{0, 10}};
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return group->AllReduce(list, ReduceOp::kMean); },
      [&] { return group->Reduce(list, ReduceOp::kSum, 0); },
      [&] { return group->Broadcast(list, 0); },
      [&] { return group->ReduceScatter(list, all, ReduceOp::kMean); },
      [&] { return group->AllGather(list, all); },
      [&] { return group->Barrier(); },
      [&] { return group->AllocateShared(100).status(); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    RunRanks(1, [&](int) { EXPECT_EQ(calls[i](), absl::OkStatus()); });
    EXPECT_FALSE(HasFakeContext(0));
    RunRanks(1, [&](int) {
      EXPECT_EQ(cudaSetDevice(kChosen), cudaSuccess);
      EXPECT_EQ(calls[i](), absl::OkStatus());
      int current = -1;
      EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
      EXPECT_EQ(current, kChosen);
    });
  }
  RunRanks(1, [&](int) { group.reset(); });
  for (int device = 0; device < kFakeDevices; ++device) {
    EXPECT_EQ(HasFakeContext(device), device == 1 || device == kChosen) << device;
  }
}

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_FAKE_DEVICE_TEST_H_
