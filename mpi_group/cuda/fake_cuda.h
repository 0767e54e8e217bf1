#ifndef HOOKE_MPI_GROUP_CUDA_FAKE_CUDA_H_
#define HOOKE_MPI_GROUP_CUDA_FAKE_CUDA_H_

// A CUDA runtime without devices, for tests of what the host does. fake_cuda.cc defines the functions of the runtime
// that the groups call, and our kernels' launches. A test links it in place of the runtime; if a function is missing,
// the link fails. "Device memory" is memory of the process. Each stream has a thread, which does the stream's work
// later and in order. Device work reads and writes memory only there, so a missing wait shows as a wrong result.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace hooke {

inline constexpr int kFakeDevices = 8;
inline constexpr int kFakeHighestPriority = -5;
// Every wait of the fakes ends after this long, with an entry in FakeState::misuses.
inline constexpr absl::Duration kFakeWaitMax = absl::Seconds(30);

// A test can read all of this, and set the last fields. A number counts what exists at the moment, or what has happened
// since ResetFake().
struct FakeState {
  int waiting_for_events = 0;         // Streams that wait for an event.
  int waiting_for_ranks = 0;          // Streams whose collective waits for other ranks.
  int queries = 0;                    // Calls of cudaStreamQuery.
  int copies = 0;                     // Copies that streams have done.
  int collectives = 0;                // Collectives that all ranks have done.
  int aborts = 0;                     // Calls of ncclCommAbort.
  int communicators = 0;              // Communicators that exist.
  int registrations = 0;              // Buffers that are registered.
  int nccl_allocations = 0;           // Calls of ncclMemAlloc that gave memory.
  std::vector<std::string> calls;     // Collectives given to NCCL, as "NAME COUNT".
  std::vector<std::string> misuses;   // What a real library might punish. A test expects none.
  std::vector<int> priorities;        // Of the streams made.
  std::vector<cudaStream_t> waiters;  // The streams that were told to wait for an event.
  // Set by a test.
  bool unique_id_fails = false;
  int device_without_mem_alloc = -1;  // ncclMemAlloc fails there.
  int device_without_register = -1;   // ncclCommRegister fails there.
  int rank_with_error = -1;           // Its communicator has an asynchronous error.
};

absl::Mutex& FakeMutex();
FakeState& Fake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(FakeMutex());
// Forgets counts, settings and contexts. No communicator or registration may exist, because their counts begin at 0
// again.
void ResetFake();
// A copy of the state.
FakeState LookAtFake();
void SetFake(const std::function<void(FakeState&)>& change);
// Waits until the state is as a test wants it. False after kFakeWaitMax.
bool AwaitFake(const std::function<bool(const FakeState&)>& reached);
// As AwaitFake(); the caller holds the mutex. After kFakeWaitMax it adds `what` to the misuses.
void AwaitLocked(const std::function<bool()>& reached, const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(FakeMutex());

// Gives work to a stream, as the launch of a kernel does. Null: the current device's default stream.
void LaunchFake(cudaStream_t stream, std::function<void()> work);
// Waits until a stream has no work left, or until its work waits for an event. False after kFakeWaitMax.
bool AwaitIdleOrWaiting(cudaStream_t stream);
// Whether a context was made on a device.
bool HasFakeContext(int device);
// Whether all of these bytes are memory that was allocated on the device and not freed.
bool IsFakeMemory(const void* address, uint64_t bytes, int device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(FakeMutex());
int FakeDeviceOf(cudaStream_t stream);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_FAKE_CUDA_H_
