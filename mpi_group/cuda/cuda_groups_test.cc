// Tests that groups on the memory of one device compute the same results as the host. Without a device every test is
// skipped, with the driver's reason.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "mpi_group/call.h"
#include "mpi_group/cuda/device_group.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/device_reduce.h"
#include "mpi_group/cuda/nccl_calls.h"
#include "mpi_group/cuda/nccl_group.h"
#include "mpi_group/cuda/staged_group.h"
#include "mpi_group/groups/in_process_group.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/reduce/reduce.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat64, DataType::kBFloat16,
                               DataType::kFloat16, DataType::kInt32,   DataType::kInt64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax};

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(code) << "; run on a machine with a GPU and its driver";
    }
  }
};

// Makes fractions for floats, so that the order of additions and every rounding shows. For integers it makes numbers of
// the whole range, so that sums wrap around.
std::vector<char> Numbers(DataType type, uint64_t values, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<char> bytes(values * SizeOf(type));
  std::vector<float> singles(values);
  for (uint64_t i = 0; i < values; ++i) {
    const auto whole = static_cast<int64_t>(random());
    const double fraction = static_cast<double>(whole % 4097) / 53;
    singles[i] = static_cast<float>(fraction);
    char* const place = bytes.data() + i * SizeOf(type);
    if (type == DataType::kFloat32) std::memcpy(place, &singles[i], sizeof(float));
    if (type == DataType::kFloat64) std::memcpy(place, &fraction, sizeof(double));
    if (type == DataType::kInt32 || type == DataType::kInt64) std::memcpy(place, &whole, SizeOf(type));
  }
  if (SizeOf(type) == 2) Narrow(type, singles, absl::MakeSpan(bytes));
  return bytes;
}

// Puts bytes into new device memory, `offset` bytes from its beginning. A copy from ordinary host memory may still be
// under way when cudaMemcpy returns, so it waits for the stream of the copy.
DeviceMemory ToDevice(const std::vector<char>& bytes, uint64_t offset = 0) {
  auto memory = AllocateDeviceMemory(offset + bytes.size() + 64);
  EXPECT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(cudaMemcpy(memory->get() + offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  return *std::move(memory);
}

std::vector<char> FromDevice(const char* memory, uint64_t bytes) {
  std::vector<char> copy(bytes);
  EXPECT_EQ(cudaMemcpy(copy.data(), memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  return copy;
}

// The reduction of the values in `range` of ranks `first`, `first` + 1, ..., modulo n, in this order, as the host
// computes it.
std::vector<char> Reduced(const Reduction& reduction, const std::vector<std::vector<char>>& ranks, int first,
                          ValueRange range) {
  const size_t n = ranks.size();
  const uint64_t value_bytes = SizeOf(reduction.type);
  std::vector<const char*> sources;
  sources.reserve(n);
  for (size_t i = 0; i < n; ++i) sources.push_back(ranks[(first + i) % n].data() + range.begin * value_bytes);
  std::vector<char> result(range.size() * value_bytes);
  char* const destinations[] = {result.data()};
  Reduce(reduction, sources, destinations, range.size());
  return result;
}

// Makes the inputs of n ranks.
std::vector<std::vector<char>> Inputs(DataType type, int n, uint64_t values) {
  std::vector<std::vector<char>> inputs;
  inputs.reserve(n);
  for (int rank = 0; rank < n; ++rank) inputs.push_back(Numbers(type, values, rank));
  return inputs;
}

// The expected part `part` of a ring's reduction. Values are added from the next rank on, around to rank `part` itself.
// Sums of 16-bit values are rounded once, after a mean's division.
std::vector<char> RingReduced(DataType type, ReduceOp op, const std::vector<std::vector<char>>& ranks, int part,
                              ValueRange range) {
  return Reduced({type, op, static_cast<int>(ranks.size())}, ranks, part + 1, range);
}

std::vector<char> RingReducedAll(DataType type, ReduceOp op, const std::vector<std::vector<char>>& ranks,
                                 uint64_t values) {
  std::vector<char> all;
  const int n = static_cast<int>(ranks.size());
  const Parts parts = EvenParts(values, n);
  for (int part = 0; part < n; ++part) {
    const std::vector<char> one = RingReduced(type, op, ranks, part, parts[part]);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<char> BytesIn(const std::vector<char>& bytes, DataType type, ValueRange range) {
  return {bytes.begin() + static_cast<ptrdiff_t>(range.begin * SizeOf(type)),
          bytes.begin() + static_cast<ptrdiff_t>(range.end * SizeOf(type))};
}

std::string Name(DataType type, ReduceOp op, int n, uint64_t values) {
  return std::string(NameOf(type)) + " " + std::string(NameOf(op)) + " of " + std::to_string(n) + " x " +
         std::to_string(values);
}

// Reduces three vectors on the device into the first two of them, and compares with the host's reduction. The vectors
// begin `shift` values behind an address that is a multiple of 16 bytes.
void CheckKernel(DataType type, ReduceOp op, uint64_t values, uint64_t shift) {
  SCOPED_TRACE(Name(type, op, 3, values) + " from " + std::to_string(shift));
  const uint64_t offset = shift * SizeOf(type);
  std::vector<DeviceMemory> memory;
  DeviceReduction what;
  what.type = type;
  what.op = op;
  what.mean_of = 3;
  what.values = values;
  what.sources = 3;
  what.destinations = 2;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(ToDevice(Numbers(type, values, i), offset));
    what.source[i] = memory[i].get() + offset;
    if (i < 2) what.destination[i] = memory[i].get() + offset;
  }
  ASSERT_EQ(LaunchReduce(what, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<char> expected = Reduced({type, op, 3}, Inputs(type, 3, values), 0, {0, values});
  EXPECT_EQ(FromDevice(memory[0].get() + offset, expected.size()), expected);
  EXPECT_EQ(FromDevice(memory[1].get() + offset, expected.size()), expected);
}

// The kernel's result is bitwise that of the host's reduction, for all types and operations, in place. It loads vectors
// that begin at a multiple of 16 bytes by packs of 16 bytes, with up to seven values left over, and others by values.
TEST_F(CudaTest, KernelAgreesWithTheHost) {
  for (DataType type : kTypes) {
    for (ReduceOp op : kOps) {
      for (uint64_t values : {1, 7, 8, 255, 257, 1000003}) {
        CheckKernel(type, op, values, 0);
        CheckKernel(type, op, values, 1);
      }
    }
  }
  // Each thread takes several values, and several packs.
  CheckKernel(DataType::kFloat32, ReduceOp::kSum, 2100003, 1);
  CheckKernel(DataType::kFloat32, ReduceOp::kSum, 4300003, 0);
}

// Converting 16-bit values to float32 and back on the device gives the same bits as on the host.
// As in CheckKernel, `shift` values may stand before the vectors.
TEST_F(CudaTest, WidenAndNarrowAgreeWithTheHost) {
  constexpr uint64_t kValues = 100003;
  for (DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    for (uint64_t shift : {0, 1}) {
      SCOPED_TRACE(std::string(NameOf(type)) + " from " + std::to_string(shift));
      const uint64_t offset = shift * SizeOf(type);
      const std::vector<char> narrow = Numbers(type, kValues, 1);
      std::vector<float> wide(kValues);
      Widen(type, narrow, absl::MakeSpan(wide));
      const DeviceMemory from = ToDevice(narrow, offset);
      const DeviceMemory to = ToDevice(std::vector<char>(kValues * sizeof(float)));
      ASSERT_EQ(LaunchWiden(type, from.get() + offset, reinterpret_cast<float*>(to.get()), kValues, nullptr),
                cudaSuccess);
      const absl::Span<const char> expected = BytesOf(absl::MakeConstSpan(wide));
      EXPECT_EQ(FromDevice(to.get(), expected.size()), std::vector<char>(expected.begin(), expected.end()));
      // Numbers that have to be rounded.
      const std::vector<char> singles = Numbers(DataType::kFloat32, kValues, 2);
      std::memcpy(wide.data(), singles.data(), singles.size());
      std::vector<char> rounded(narrow.size());
      Narrow(type, wide, absl::MakeSpan(rounded));
      const DeviceMemory single = ToDevice(singles);
      ASSERT_EQ(LaunchNarrow(type, reinterpret_cast<const float*>(single.get()), from.get() + offset, kValues, nullptr),
                cudaSuccess);
      EXPECT_EQ(FromDevice(from.get() + offset, rounded.size()), rounded);
    }
  }
  EXPECT_EQ(LaunchWiden(DataType::kInt32, nullptr, nullptr, 1, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(LaunchNarrow(DataType::kFloat32, nullptr, nullptr, 1, nullptr), cudaErrorInvalidValue);
}

// Staged groups of n ranks that share device 0, in chunks so short that lists take several; runs body(group, rank).
template <typename Body>
void RunStagedGroups(int n, absl::Duration deadline, const Body& body) {
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(n);
  RunRanks(n, [&](int rank) {
    StagedGroupOptions options;
    options.chunk_bytes = 4096;
    options.deadline = deadline;
    const auto group = MakeStagedGroup(std::move(transports[rank]), options);
    ASSERT_TRUE(group.ok()) << group.status();
    body(**group, rank);
    // No rank leaves while others are in their last call.
    (*group)->Barrier().IgnoreError();
  });
}

// Puts `bytes` into device memory, runs call(list) on it, and returns the bytes afterwards.
template <typename Call>
std::vector<char> After(DataType type, const std::vector<char>& bytes, const Call& call) {
  const DeviceMemory memory = ToDevice(bytes);
  EXPECT_EQ(call(TensorList(type, absl::MakeSpan(memory.get(), bytes.size()))), absl::OkStatus());
  return FromDevice(memory.get(), bytes.size());
}

// Reductions of groups of 1 to 4 ranks are bitwise those that the host computes in the ring's order. All types and
// operations are tried, for a whole list and for each rank's own part.
TEST_F(CudaTest, StagedReductions) {
  for (int n : {1, 2, 3, 4}) {
    RunStagedGroups(n, absl::Seconds(30), [n](Group& group, int rank) {
      for (DataType type : kTypes) {
        for (ReduceOp op : kOps) {
          for (uint64_t values : {0, 1, 5, 20011}) {
            SCOPED_TRACE(Name(type, op, n, values));
            const std::vector<std::vector<char>> inputs = Inputs(type, n, values);
            const std::vector<char> all = RingReducedAll(type, op, inputs, values);
            const auto all_reduce = [&](const TensorList& list) { return group.AllReduce(list, op); };
            EXPECT_EQ(After(type, inputs[rank], all_reduce), all);
            const auto reduce = [&](const TensorList& list) { return group.Reduce(list, op, n - 1); };
            const std::vector<char> reduced = After(type, inputs[rank], reduce);
            if (rank == n - 1) {
              EXPECT_EQ(reduced, all);
            }
            const Parts parts = EvenParts(values - values / 3, n);
            const auto scatter = [&](const TensorList& list) { return group.ReduceScatter(list, parts, op); };
            EXPECT_EQ(BytesIn(After(type, inputs[rank], scatter), type, parts[rank]),
                      RingReduced(type, op, inputs, rank, parts[rank]));
          }
        }
      }
    });
  }
}

// A broadcast brings the root's values to all ranks. An all-gather brings each rank's part and leaves values outside
// the parts unchanged.
TEST_F(CudaTest, StagedCopies) {
  constexpr uint64_t kValues = 20011;
  for (int n : {1, 2, 3, 4}) {
    RunStagedGroups(n, absl::Seconds(30), [n](Group& group, int rank) {
      for (DataType type : kTypes) {
        SCOPED_TRACE(NameOf(type));
        const std::vector<std::vector<char>> inputs = Inputs(type, n, kValues);
        for (int root = 0; root < n; ++root) {
          const auto broadcast = [&](const TensorList& list) { return group.Broadcast(list, root); };
          EXPECT_EQ(After(type, inputs[rank], broadcast), inputs[root]);
        }
        Parts parts = EvenParts(kValues - 100, n);
        parts[n / 2].end = parts[n / 2].begin;
        std::vector<char> expected = inputs[rank];
        for (int owner = 0; owner < n; ++owner) {
          const std::vector<char> part = BytesIn(inputs[owner], type, parts[owner]);
          std::copy(part.begin(), part.end(),
                    expected.begin() + static_cast<ptrdiff_t>(parts[owner].begin * SizeOf(type)));
        }
        const auto all_gather = [&](const TensorList& list) { return group.AllGather(list, parts); };
        EXPECT_EQ(After(type, inputs[rank], all_gather), expected);
      }
    });
  }
}

// Tests sums that lose their small addends if they are rounded at every rank, and means whose sum is too large for
// float16.
TEST_F(CudaTest, SixteenBitsAreRoundedOnce) {
  constexpr uint64_t kValues = 12;
  for (int n : {2, 3, 4}) {
    RunStagedGroups(n, absl::Seconds(30), [n](Group& group, int rank) {
      std::vector<float> numbers(kValues);
      std::vector<char> bytes(kValues * 2);
      // Each value is 2048 on one rank and 1 on the others.
      for (uint64_t i = 0; i < kValues; ++i)
        numbers[i] = i % static_cast<uint64_t>(n) == static_cast<uint64_t>(rank) ? 2048 : 1;
      Narrow(DataType::kFloat16, numbers, absl::MakeSpan(bytes));
      std::vector<char> expected(bytes.size());
      std::vector<float> sums(kValues, 2048.0F + static_cast<float>(n - 1));
      Narrow(DataType::kFloat16, sums, absl::MakeSpan(expected));
      const auto sum = [&](const TensorList& list) { return group.AllReduce(list, ReduceOp::kSum); };
      EXPECT_EQ(After(DataType::kFloat16, bytes, sum), expected);
      numbers.assign(kValues, 40000);
      Narrow(DataType::kFloat16, numbers, absl::MakeSpan(bytes));
      const auto mean = [&](const TensorList& list) { return group.AllReduce(list, ReduceOp::kMean); };
      EXPECT_EQ(After(DataType::kFloat16, bytes, mean), bytes);
    });
  }
}

// If one rank's call differs, all ranks get an error that names that rank, long before the deadline.
TEST_F(CudaTest, DifferentCallsAreNamedOnAllRanks) {
  constexpr uint64_t kValues = 5000;
  constexpr int kRanks = 3;
  for (const char* wrong : {"size", "type", "op"}) {
    SCOPED_TRACE(wrong);
    const absl::Time start = SteadyNow();
    std::vector<absl::Status> told(kRanks);
    RunStagedGroups(kRanks, absl::Seconds(120), [&](Group& group, int rank) {
      const std::string error = rank == 1 ? wrong : "";
      const DataType type = error == "type" ? DataType::kInt32 : DataType::kFloat32;
      const DeviceMemory memory = ToDevice(Numbers(type, kValues, rank));
      const uint64_t values = error == "size" ? kValues - 1 : kValues;
      const TensorList list(type, absl::MakeSpan(memory.get(), values * SizeOf(type)));
      told[rank] = group.AllReduce(list, error == "op" ? ReduceOp::kMax : ReduceOp::kSum);
    });
    EXPECT_LT(SteadyNow() - start, absl::Seconds(60));
    for (const absl::Status& status : told) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), testing::ContainsRegex("rank 1 in call 1: all-reduce"));
    }
  }
}

// Host memory is refused.
TEST_F(CudaTest, HostMemoryIsRefused) {
  auto group = MakeStagedGroup(std::move(MakeInProcessTransports(1)[0]), {});
  ASSERT_TRUE(group.ok()) << group.status();
  std::vector<float> values(10);
  const absl::Status status = (*group)->AllReduce(TensorList(absl::MakeSpan(values)), ReduceOp::kSum);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

// If a rank cannot allocate memory, all ranks get an error, as does every later call.
TEST_F(CudaTest, AllocationFailsTheGroup) {
  constexpr uint64_t kTooMuch = uint64_t{1} << 44;  // 16 TiB.
  RunStagedGroups(2, absl::Seconds(60), [](Group& group, int rank) {
    const auto memory = group.AllocateShared(4000);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(FromDevice(memory->data(), 4000), std::vector<char>(4000));
    const absl::Time start = SteadyNow();
    EXPECT_FALSE(group.AllocateShared(rank == 0 ? 4000 : kTooMuch).ok());
    EXPECT_FALSE(group.Barrier().ok());
    EXPECT_LT(SteadyNow() - start, absl::Seconds(30));
  });
  auto control = MakeInProcessGroups(1);
  const auto nccl = MakeNcclGroup(*control[0], LoadNccl(), NcclGroupOptions());
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  EXPECT_EQ((*nccl)->AllocateShared(kTooMuch).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*nccl)->Barrier().code(), absl::StatusCode::kResourceExhausted);
}

// A NCCL group of one rank on one device, because more ranks need more devices.
TEST_F(CudaTest, NcclGroupOfOne) {
  auto control = MakeInProcessGroups(1);
  auto group = MakeNcclGroup(*control[0], LoadNccl(), NcclGroupOptions());
  ASSERT_TRUE(group.ok()) << group.status();
  const auto memory = (*group)->AllocateShared(4000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const TensorList list(DataType::kFloat32, *memory);
  EXPECT_EQ((*group)->AllReduce(list, ReduceOp::kMean), absl::OkStatus());
  EXPECT_EQ((*group)->Broadcast(list, 0), absl::OkStatus());
  EXPECT_EQ((*group)->Barrier(), absl::OkStatus());
  EXPECT_EQ(FromDevice(memory->data(), 4000), std::vector<char>(4000));
  // A list in host memory ends the group, because the other ranks do not learn of the error.
  std::vector<float> values(10);
  const absl::Status refused = (*group)->AllReduce(TensorList(absl::MakeSpan(values)), ReduceOp::kSum);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_EQ((*group)->Barrier(), refused);
}

// NCCL refuses a device that two ranks share. Both ranks learn it long before their deadlines.
TEST_F(CudaTest, NcclRefusesASharedDevice) {
  auto control = MakeInProcessGroups(2);
  RunRanks(2, [&](int rank) {
    NcclGroupOptions options;
    options.deadline = absl::Seconds(60);
    const absl::Time start = SteadyNow();
    const auto group = MakeNcclGroup(*control[rank], LoadNccl(), options);
    EXPECT_FALSE(group.ok());
    EXPECT_LT(SteadyNow() - start, absl::Seconds(50)) << group.status();
  });
}

// A group waits for what its caller's stream has still to write, and the stream's later work comes after the group's.
void CheckOrder(DeviceGroup& group) {
  constexpr uint64_t kValues = 1000;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const auto memory = group.AllocateShared(kValues * sizeof(int32_t));
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto copy = AllocateDeviceMemory(memory->size());
  ASSERT_TRUE(copy.ok()) << copy.status();
  group.UseStream(stream);
  for (int round = 1; round <= 5; ++round) {
    const auto late = [](void*) { absl::SleepFor(absl::Milliseconds(50)); };
    ASSERT_EQ(cudaLaunchHostFunc(stream, late, nullptr), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory->data(), round, memory->size(), stream), cudaSuccess);
    ASSERT_EQ(group.AllReduce(TensorList(DataType::kInt32, *memory), ReduceOp::kSum), absl::OkStatus());
    ASSERT_EQ(cudaMemcpyAsync(copy->get(), memory->data(), memory->size(), cudaMemcpyDeviceToDevice, stream),
              cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory->data(), 0, memory->size(), stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    // Every byte of every rank was `round`, and no byte of the sum carries.
    const std::vector<char> expected(memory->size(), static_cast<char>(group.size() * round));
    EXPECT_EQ(FromDevice(copy->get(), memory->size()), expected);
  }
  group.UseStream(nullptr);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudaTest, OrderWithTheCallersStream) {
  RunStagedGroups(2, absl::Seconds(60), [](DeviceGroup& group, int) { CheckOrder(group); });
  auto control = MakeInProcessGroups(1);
  const auto nccl = MakeNcclGroup(*control[0], LoadNccl(), NcclGroupOptions());
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  CheckOrder(**nccl);
}

}  // namespace
}  // namespace hooke
