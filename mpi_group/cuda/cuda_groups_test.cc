// Groups on device memory, on one device: what they compute is what the host computes. Without a device every test is
// skipped, with the driver's reason.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "mpi_group/call.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/device_reduce.h"
#include "mpi_group/cuda/nccl_group.h"
#include "mpi_group/cuda/staged_group.h"
#include "mpi_group/in_process_transport.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/reduce.h"

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

// Small whole numbers, exact in every type.
std::vector<char> Numbers(DataType type, uint64_t values, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> numbers(values);
  for (float& number : numbers) number = static_cast<float>(random() % 33) - 16;
  std::vector<char> bytes(values * SizeOf(type));
  if (SizeOf(type) == 2) {
    Narrow(type, numbers, absl::MakeSpan(bytes));
    return bytes;
  }
  for (uint64_t i = 0; i < values; ++i) {
    char* const place = bytes.data() + i * SizeOf(type);
    if (type == DataType::kFloat32) *reinterpret_cast<float*>(place) = numbers[i];
    if (type == DataType::kFloat64) *reinterpret_cast<double*>(place) = numbers[i];
    if (type == DataType::kInt32) *reinterpret_cast<int32_t*>(place) = static_cast<int32_t>(numbers[i]);
    if (type == DataType::kInt64) *reinterpret_cast<int64_t*>(place) = static_cast<int64_t>(numbers[i]);
  }
  return bytes;
}

DeviceMemory ToDevice(const std::vector<char>& bytes) {
  auto memory = AllocateDeviceMemory(bytes.size() + 64);
  EXPECT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(cudaMemcpy(memory->get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  return *std::move(memory);
}

std::vector<char> FromDevice(const char* memory, uint64_t bytes) {
  std::vector<char> copy(bytes);
  EXPECT_EQ(cudaMemcpy(copy.data(), memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  return copy;
}

// The reduction of what ranks 0 to n-1 hold, as the host computes it.
std::vector<char> Expected(DataType type, ReduceOp op, int n, uint64_t values, int mean_of) {
  std::vector<char> result = Numbers(type, values, 0);
  std::vector<std::vector<char>> others;
  std::vector<const char*> sources = {result.data()};
  for (int rank = 1; rank < n; ++rank) others.push_back(Numbers(type, values, rank));
  for (const std::vector<char>& other : others) sources.push_back(other.data());
  char* const destinations[] = {result.data()};
  Reduce({type, op, mean_of}, sources, destinations, values);
  return result;
}

std::string Name(DataType type, ReduceOp op, int n, uint64_t values) {
  return std::string(NameOf(type)) + " " + std::string(NameOf(op)) + " of " + std::to_string(n) + " x " +
         std::to_string(values);
}

// The kernel gives bitwise what the host's reduction gives, for all types and operations, in place.
TEST_F(CudaTest, KernelAgreesWithTheHost) {
  for (DataType type : kTypes) {
    for (ReduceOp op : kOps) {
      for (uint64_t values : {1, 255, 257, 1000003}) {
        SCOPED_TRACE(Name(type, op, 3, values));
        std::vector<DeviceMemory> memory;
        DeviceReduction what;
        what.type = type;
        what.op = op;
        what.mean_of = 3;
        what.values = values;
        what.sources = 3;
        what.destinations = 2;
        for (int i = 0; i < 3; ++i) {
          memory.push_back(ToDevice(Numbers(type, values, i)));
          what.source[i] = memory[i].get();
          if (i < 2) what.destination[i] = memory[i].get();
        }
        ASSERT_EQ(LaunchReduce(what, nullptr), cudaSuccess);
        ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        const std::vector<char> expected = Expected(type, op, 3, values, 3);
        EXPECT_EQ(FromDevice(memory[0].get(), expected.size()), expected);
        EXPECT_EQ(FromDevice(memory[1].get(), expected.size()), expected);
      }
    }
  }
}

// Every operation of staged groups of 1 to 4 ranks that share the device, over several chunks.
TEST_F(CudaTest, StagedGroups) {
  for (int n : {1, 2, 3, 4}) {
    std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(n);
    RunRanks(n, [&](int rank) {
      StagedGroupOptions options;
      options.chunk_bytes = 4096;
      auto group = MakeStagedGroup(std::move(transports[rank]), options);
      ASSERT_TRUE(group.ok()) << group.status();
      for (DataType type : kTypes) {
        for (ReduceOp op : kOps) {
          for (uint64_t values : {0, 1, 5, 20011}) {
            SCOPED_TRACE(Name(type, op, n, values));
            const DeviceMemory memory = ToDevice(Numbers(type, values, rank));
            const TensorList list(type, absl::MakeSpan(memory.get(), values * SizeOf(type)));
            ASSERT_EQ((*group)->AllReduce(list, op), absl::OkStatus());
            EXPECT_EQ(FromDevice(memory.get(), list.bytes()), Expected(type, op, n, values, n));
            ASSERT_EQ((*group)->Barrier(), absl::OkStatus());
          }
        }
      }
      const uint64_t values = 20011;
      const DeviceMemory memory = ToDevice(Numbers(DataType::kFloat32, values, rank));
      const TensorList list(DataType::kFloat32, absl::MakeSpan(memory.get(), values * sizeof(float)));
      ASSERT_EQ((*group)->Broadcast(list, n - 1), absl::OkStatus());
      EXPECT_EQ(FromDevice(memory.get(), list.bytes()), Numbers(DataType::kFloat32, values, n - 1));
      const auto parts = EvenParts(values, n);
      ASSERT_EQ((*group)->AllGather(list, parts), absl::OkStatus());
      ASSERT_EQ((*group)->ReduceScatter(list, parts, ReduceOp::kMax), absl::OkStatus());
      EXPECT_EQ(FromDevice(memory.get(), list.bytes()).size(), list.bytes());
    });
  }
}

// Memory of the host is refused, with words.
TEST_F(CudaTest, HostMemoryIsRefused) {
  auto group = MakeStagedGroup(std::move(MakeInProcessTransports(1)[0]), {});
  ASSERT_TRUE(group.ok()) << group.status();
  std::vector<float> values(10);
  const absl::Status status = (*group)->AllReduce(TensorList(absl::MakeSpan(values)), ReduceOp::kSum);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

// NCCL's group of one rank on one device; more ranks need more devices.
TEST_F(CudaTest, NcclGroupOfOne) {
  auto control = MakeInProcessGroups(1);
  auto group = MakeNcclGroup(*control[0], NcclGroupOptions());
  ASSERT_TRUE(group.ok()) << group.status();
  const auto memory = (*group)->AllocateShared(4000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const TensorList list(DataType::kFloat32, *memory);
  EXPECT_EQ((*group)->AllReduce(list, ReduceOp::kMean), absl::OkStatus());
  EXPECT_EQ((*group)->Broadcast(list, 0), absl::OkStatus());
  EXPECT_EQ((*group)->Barrier(), absl::OkStatus());
  EXPECT_EQ(FromDevice(memory->data(), 4000), std::vector<char>(4000));
}

}  // namespace
}  // namespace hooke
