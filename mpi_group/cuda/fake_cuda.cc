#include "mpi_group/cuda/fake_cuda.h"

#include <cudaTypedefs.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "mpi_group/cuda/device_reduce.h"
#include "mpi_group/reduce/reduce.h"

struct CUstream_st {
  int device = 0;
  bool closing = false;
  bool waits = false;                      // Its first work waits for an event.
  std::deque<std::function<void()>> work;  // The first is being done.
  std::thread thread;
};

struct CUevent_st {
  struct Progress {
    int64_t recorded = 0;
    int64_t done = 0;
  };
  int device = 0;
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
};

namespace hooke {
namespace {

struct Block {
  uint64_t bytes = 0;
  int device = 0;
  cudaMemoryType type = cudaMemoryTypeDevice;
};

struct Runtime {
  absl::Mutex mutex;
  FakeState state;
  std::set<int> contexts;
  std::map<const char*, Block> blocks;
  std::map<int, cudaStream_t> default_streams;
};

Runtime& TheRuntime() {
  static auto* const runtime = new Runtime;
  return *runtime;
}

thread_local int current_device = 0;

// Almost every call makes a context on the current device, if there is none.
void Touch() { TheRuntime().contexts.insert(current_device); }

void Serve(cudaStream_t stream) {
  while (true) {
    std::function<void()> work;
    {
      const auto ready = [stream] { return stream->closing || !stream->work.empty(); };
      absl::MutexLock lock(&FakeMutex(), absl::Condition(&ready));
      if (stream->work.empty()) return;
      work = stream->work.front();
    }
    work();
    absl::MutexLock lock(&FakeMutex());
    stream->work.pop_front();
  }
}

cudaStream_t NewStream() {
  auto* const stream = new CUstream_st;
  stream->device = current_device;
  stream->thread = std::thread(Serve, stream);
  return stream;
}

// The stream itself, or the current device's default stream.
cudaStream_t Resolved(cudaStream_t stream) {
  Touch();
  if (stream != nullptr) return stream;
  cudaStream_t& found = TheRuntime().default_streams[current_device];
  if (found == nullptr) found = NewStream();
  return found;
}

std::pair<const char* const, Block>* Find(const void* address) {
  auto& blocks = TheRuntime().blocks;
  auto next = blocks.upper_bound(static_cast<const char*>(address));
  if (next == blocks.begin()) return nullptr;
  --next;
  return static_cast<const char*>(address) < next->first + next->second.bytes ? &*next : nullptr;
}

cudaError_t Allocate(void** memory, size_t bytes, cudaMemoryType type) {
  constexpr size_t kMemory = size_t{1} << 30;
  absl::MutexLock lock(&FakeMutex());
  Touch();
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kMemory) return cudaErrorMemoryAllocation;
  // Not zero, as memory of a device is not.
  *memory = std::memset(std::aligned_alloc(256, (bytes + 255) / 256 * 256), 0xCD, bytes);
  TheRuntime().blocks[static_cast<const char*>(*memory)] = {bytes, current_device, type};
  return cudaSuccess;
}

cudaError_t Free(void* memory) {
  absl::MutexLock lock(&FakeMutex());
  Touch();
  if (memory == nullptr) return cudaSuccess;
  if (TheRuntime().blocks.erase(static_cast<const char*>(memory)) == 0) return cudaErrorInvalidValue;
  std::free(memory);
  return cudaSuccess;
}

// A kernel must run on the current device.
int LaunchKernel(cudaStream_t stream, std::function<void()> work) {
  absl::MutexLock lock(&FakeMutex());
  stream = Resolved(stream);
  if (stream->device != current_device) return cudaErrorInvalidResourceHandle;
  stream->work.push_back(std::move(work));
  return cudaSuccess;
}

CUresult PrimaryContextState(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  *active = HasFakeContext(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace

absl::Mutex& FakeMutex() { return TheRuntime().mutex; }
FakeState& Fake() { return TheRuntime().state; }

void ResetFake() {
  absl::MutexLock lock(&FakeMutex());
  TheRuntime().state = FakeState();
  TheRuntime().contexts.clear();
}

FakeState LookAtFake() {
  absl::MutexLock lock(&FakeMutex());
  return Fake();
}

void SetFake(const std::function<void(FakeState&)>& change) {
  absl::MutexLock lock(&FakeMutex());
  change(Fake());
}

bool AwaitFake(const std::function<bool(const FakeState&)>& reached) {
  const auto condition = [&reached] { return reached(TheRuntime().state); };
  absl::MutexLock lock(&FakeMutex());
  return FakeMutex().AwaitWithTimeout(absl::Condition(&condition), kFakeWaitMax);
}

void AwaitLocked(const std::function<bool()>& reached, const char* what) {
  if (!FakeMutex().AwaitWithTimeout(absl::Condition(&reached), kFakeWaitMax)) Fake().misuses.emplace_back(what);
}

void LaunchFake(cudaStream_t stream, std::function<void()> work) {
  absl::MutexLock lock(&FakeMutex());
  Resolved(stream)->work.push_back(std::move(work));
}

bool AwaitIdleOrWaiting(cudaStream_t stream) {
  const auto condition = [stream] { return stream->work.empty() || stream->waits; };
  absl::MutexLock lock(&FakeMutex());
  return FakeMutex().AwaitWithTimeout(absl::Condition(&condition), kFakeWaitMax);
}

bool HasFakeContext(int device) {
  absl::MutexLock lock(&FakeMutex());
  return TheRuntime().contexts.count(device) != 0;
}

bool IsFakeMemory(const void* address, uint64_t bytes, int device) {
  const auto* const block = Find(address);
  if (block == nullptr || block->second.device != device) return false;
  return static_cast<const char*>(address) + bytes <= block->first + block->second.bytes;
}

int FakeDeviceOf(cudaStream_t stream) { return stream->device; }

int LaunchReduce(const DeviceReduction& what, CUstream_st* stream) {
  return LaunchKernel(stream, [what] {
    std::vector<const char*> from(what.sources);
    std::vector<char*> to(what.destinations);
    for (int i = 0; i < what.sources; ++i) from[i] = static_cast<const char*>(what.source[i]);
    for (int i = 0; i < what.destinations; ++i) to[i] = static_cast<char*>(what.destination[i]);
    Reduce({what.type, what.op, what.mean_of}, from, to, what.values);
  });
}

int LaunchWiden(DataType type, const void* from, float* to, uint64_t values, CUstream_st* stream) {
  return LaunchKernel(stream, [=] {
    Widen(type, {static_cast<const char*>(from), values * SizeOf(type)}, {to, values});
  });
}

int LaunchNarrow(DataType type, const float* from, void* to, uint64_t values, CUstream_st* stream) {
  return LaunchKernel(stream, [=] { Narrow(type, {from, values}, {static_cast<char*>(to), values * SizeOf(type)}); });
}

}  // namespace hooke

using hooke::current_device;
using hooke::FakeMutex;

// The functions of the runtime. As in CUDA 12 and later, cudaSetDevice makes a context.

cudaError_t cudaGetDeviceCount(int* count) {
  *count = hooke::kFakeDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= hooke::kFakeDevices) return cudaErrorInvalidDevice;
  absl::MutexLock lock(&FakeMutex());
  current_device = device;
  hooke::Touch();
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  *function = reinterpret_cast<void*>(&hooke::PrimaryContextState);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t) { return "an error of the fake CUDA"; }
const char* cudaGetErrorName(cudaError_t) { return "fake"; }

cudaError_t cudaMalloc(void** memory, size_t bytes) { return hooke::Allocate(memory, bytes, cudaMemoryTypeDevice); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return hooke::Allocate(memory, bytes, cudaMemoryTypeHost); }
cudaError_t cudaFree(void* memory) { return hooke::Free(memory); }
cudaError_t cudaFreeHost(void* memory) { return hooke::Free(memory); }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Touch();
  const auto* const block = hooke::Find(address);
  *attributes = {};
  attributes->type = block == nullptr ? cudaMemoryTypeUnregistered : block->second.type;
  attributes->device = block == nullptr ? -2 : block->second.device;
  return cudaSuccess;
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Resolved(nullptr)->work.emplace_back([=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Resolved(stream)->work.emplace_back([=] {
    std::memcpy(to, from, bytes);
    hooke::SetFake([](hooke::FakeState& state) { ++state.copies; });
  });
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Touch();
  *least = 0;
  *greatest = hooke::kFakeHighestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Touch();
  *stream = hooke::NewStream();
  hooke::Fake().priorities.push_back(priority);
  return cudaSuccess;
}

// Waits for the stream's work, so that its thread can end.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    absl::MutexLock lock(&FakeMutex());
    hooke::Touch();
    stream->closing = true;
  }
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  absl::MutexLock lock(&FakeMutex());
  stream = hooke::Resolved(stream);
  hooke::AwaitLocked([stream] { return stream->work.empty(); }, "cudaStreamSynchronize does not end");
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  absl::MutexLock lock(&FakeMutex());
  ++hooke::Fake().queries;
  return hooke::Resolved(stream)->work.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Touch();
  *event = new CUevent_st;
  (*event)->device = current_device;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Touch();
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  absl::MutexLock lock(&FakeMutex());
  stream = hooke::Resolved(stream);
  if (stream->device != event->device) return cudaErrorInvalidResourceHandle;
  const int64_t id = ++event->progress->recorded;
  stream->work.emplace_back([progress = event->progress, id] {
    absl::MutexLock work_lock(&FakeMutex());
    progress->done = std::max(progress->done, id);
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Touch();
  return event->progress->done >= event->progress->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  absl::MutexLock lock(&FakeMutex());
  hooke::Fake().waiters.push_back(stream);
  stream = hooke::Resolved(stream);
  stream->work.emplace_back([stream, progress = event->progress, id = event->progress->recorded] {
    absl::MutexLock work_lock(&FakeMutex());
    stream->waits = true;
    ++hooke::Fake().waiting_for_events;
    hooke::AwaitLocked([&] { return progress->done >= id; }, "an event does not happen");
    --hooke::Fake().waiting_for_events;
    stream->waits = false;
  });
  return cudaSuccess;
}
