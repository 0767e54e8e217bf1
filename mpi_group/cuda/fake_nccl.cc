#include "mpi_group/cuda/fake_nccl.h"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/cuda/fake_cuda.h"
#include "mpi_group/reduce/reduce.h"

namespace hooke {
namespace {

enum class Kind { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter };

// One rank's side of a collective.
struct Side {
  Kind kind = Kind::kAllReduce;
  const char* send = nullptr;
  char* receive = nullptr;
  uint64_t count = 0;
  ncclDataType_t type = ncclInt8;
  int op = ncclSum;
  int root = 0;
  int device = 0;
};

struct Meeting {
  std::map<int, Side> sides;
  bool done = false;
};

// The ranks that know one id.
struct World {
  int size = 0;
  int joined = 0;
  std::map<int64_t, Meeting> meetings;  // By the number of the collective.
};

// Work of a stream holds this part of its communicator. The communicator may be destroyed before the work is done.
struct Member {
  std::shared_ptr<World> world;
  int rank = 0;
  int device = 0;
  int64_t next = 0;
  bool aborted = false;
  ncclResult_t error = ncclSuccess;
  std::set<void*> registered;
};

std::map<std::string, std::shared_ptr<World>>& Worlds() {
  static auto* const worlds = new std::map<std::string, std::shared_ptr<World>>;
  return *worlds;
}

// Collectives between ncclGroupStart and ncclGroupEnd of this thread.
thread_local std::vector<std::pair<cudaStream_t, std::function<void()>>> grouped;
thread_local int group_depth = 0;

// The current device gets a context, as by any call of NCCL.
int CurrentDevice() {
  int device = 0;
  cudaGetDevice(&device);
  cudaSetDevice(device);
  return device;
}

DataType TypeOf(ncclDataType_t type) {
  const std::map<ncclDataType_t, DataType> types = {
      {ncclFloat32, DataType::kFloat32}, {ncclFloat64, DataType::kFloat64}, {ncclBfloat16, DataType::kBFloat16},
      {ncclFloat16, DataType::kFloat16}, {ncclInt32, DataType::kInt32},     {ncclInt64, DataType::kInt64}};
  return types.at(type);
}

uint64_t BytesOf(const Side& side) { return side.count * (side.type == ncclInt8 ? 1 : SizeOf(TypeOf(side.type))); }

// Reduces the bytes at `offset` of all ranks' send buffers into `to`.
void ReduceSides(const std::map<int, Side>& sides, uint64_t offset, const std::vector<char*>& to) {
  const Side& any = sides.begin()->second;
  Reduction what{TypeOf(any.type), ReduceOp::kSum, static_cast<int>(sides.size())};
  if (any.op == ncclAvg) what.op = ReduceOp::kMean;
  if (any.op == ncclMin) what.op = ReduceOp::kMin;
  if (any.op == ncclMax) what.op = ReduceOp::kMax;
  std::vector<const char*> from;
  from.reserve(sides.size());
  for (const auto& [rank, side] : sides) from.push_back(side.send + offset);
  Reduce(what, from, to, any.count);
}

void Copy(char* to, const char* from, uint64_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

// Does a collective in which all ranks have arrived.
void Do(const std::map<int, Side>& sides) {
  const Side& any = sides.begin()->second;
  const uint64_t bytes = BytesOf(any);
  std::vector<char*> all;
  for (const auto& [rank, side] : sides) {
    all.push_back(side.receive);
    if (any.kind == Kind::kReduceScatter) ReduceSides(sides, rank * bytes, {side.receive});
    if (any.kind == Kind::kBroadcast) Copy(side.receive, sides.at(any.root).send, bytes);
    if (any.kind != Kind::kAllGather) continue;
    for (const auto& [owner, other] : sides) Copy(side.receive + owner * bytes, other.send, bytes);
  }
  if (any.kind == Kind::kAllReduce) ReduceSides(sides, 0, all);
  if (any.kind == Kind::kReduce) ReduceSides(sides, 0, {all[any.root]});
}

// Why a collective cannot be done; empty if it can.
std::string Wrong(const std::map<int, Side>& sides) ABSL_EXCLUSIVE_LOCKS_REQUIRED(FakeMutex()) {
  const Side& any = sides.begin()->second;
  const auto times = static_cast<uint64_t>(sides.size());
  for (const auto& [rank, side] : sides) {
    if (side.kind != any.kind || side.count != any.count || side.type != any.type || side.op != any.op ||
        side.root != any.root) {
      return absl::StrCat("rank ", rank, " called another collective than rank 0");
    }
    const uint64_t sent = BytesOf(side) * (side.kind == Kind::kReduceScatter ? times : 1);
    const uint64_t received = BytesOf(side) * (side.kind == Kind::kAllGather ? times : 1);
    if (!IsFakeMemory(side.send, sent, side.device) || !IsFakeMemory(side.receive, received, side.device)) {
      return absl::StrCat("rank ", rank, " passed memory that is not on its device, or was freed");
    }
  }
  return "";
}

void Meet(const std::shared_ptr<Member>& member, int64_t number, const Side& side) {
  absl::MutexLock lock(&FakeMutex());
  Meeting& meeting = member->world->meetings[number];
  if (member->aborted) return;
  meeting.sides[member->rank] = side;
  if (static_cast<int>(meeting.sides.size()) == member->world->size) {
    const std::string wrong = Wrong(meeting.sides);
    if (wrong.empty()) Do(meeting.sides);
    if (!wrong.empty()) Fake().misuses.push_back(wrong);
    ++Fake().collectives;
    meeting.done = true;
  }
  ++Fake().waiting_for_ranks;
  AwaitLocked([&] { return meeting.done || member->aborted; }, "a collective is neither done nor aborted");
  --Fake().waiting_for_ranks;
}

}  // namespace
}  // namespace hooke

struct ncclComm {
  std::shared_ptr<hooke::Member> member = std::make_shared<hooke::Member>();
};

namespace hooke {
namespace {

ncclResult_t GroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t GroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  CurrentDevice();
  for (auto& [stream, work] : grouped) LaunchFake(stream, std::move(work));
  grouped.clear();
  return ncclSuccess;
}

ncclResult_t Give(const char* name, Side side, ncclComm_t comm, cudaStream_t stream) {
  GroupStart();
  side.device = CurrentDevice();
  const bool here = side.device == comm->member->device && FakeDeviceOf(stream) == side.device;
  if (here) {
    grouped.emplace_back(stream,
                         [member = comm->member, number = comm->member->next++, side] { Meet(member, number, side); });
    SetFake([&](FakeState& state) { state.calls.push_back(absl::StrCat(name, " ", side.count)); });
  }
  const ncclResult_t result = GroupEnd();
  return here ? result : ncclInvalidUsage;
}

ncclResult_t AllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                       ncclComm_t comm, cudaStream_t stream) {
  return Give("AllReduce",
              {Kind::kAllReduce, static_cast<const char*>(send), static_cast<char*>(receive), count, type, op}, comm,
              stream);
}

ncclResult_t Reduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                    ncclComm_t comm, cudaStream_t stream) {
  return Give("Reduce",
              {Kind::kReduce, static_cast<const char*>(send), static_cast<char*>(receive), count, type, op, root}, comm,
              stream);
}

ncclResult_t Broadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return Give(
      "Broadcast",
      {Kind::kBroadcast, static_cast<const char*>(send), static_cast<char*>(receive), count, type, ncclSum, root}, comm,
      stream);
}

ncclResult_t AllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                       cudaStream_t stream) {
  return Give("AllGather", {Kind::kAllGather, static_cast<const char*>(send), static_cast<char*>(receive), count, type},
              comm, stream);
}

ncclResult_t ReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return Give("ReduceScatter",
              {Kind::kReduceScatter, static_cast<const char*>(send), static_cast<char*>(receive), count, type, op},
              comm, stream);
}

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  absl::MutexLock lock(&FakeMutex());
  if (Fake().unique_id_fails) return ncclSystemError;
  const std::string name = absl::StrCat("world ", Worlds().size());
  Worlds()[name] = std::make_shared<World>();
  *id = {};
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t CommInit(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const int device = CurrentDevice();
  absl::MutexLock lock(&FakeMutex());
  const auto world = Worlds().find(std::string(id.internal));
  if (world == Worlds().end() || config->blocking != 0) return ncclInvalidArgument;
  *comm = new ncclComm;
  (*comm)->member->world = world->second;
  (*comm)->member->rank = rank;
  (*comm)->member->device = device;
  world->second->size = size;
  ++world->second->joined;
  ++Fake().communicators;
  return ncclInProgress;
}

ncclResult_t CommFinalize(ncclComm_t) {
  CurrentDevice();
  return ncclSuccess;
}

ncclResult_t GetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  CurrentDevice();
  absl::MutexLock lock(&FakeMutex());
  const Member& member = *comm->member;
  *state = member.world->joined < member.world->size ? ncclInProgress : member.error;
  if (Fake().rank_with_error == member.rank) *state = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t CommDestroy(ncclComm_t comm) {
  CurrentDevice();
  {
    absl::MutexLock lock(&FakeMutex());
    --Fake().communicators;
    if (!comm->member->registered.empty()) Fake().misuses.emplace_back("a buffer is still registered");
  }
  delete comm;
  return ncclSuccess;
}

// Ends the collectives that wait, and takes the registrations away.
ncclResult_t CommAbort(ncclComm_t comm) {
  CurrentDevice();
  {
    absl::MutexLock lock(&FakeMutex());
    comm->member->aborted = true;
    Fake().registrations -= static_cast<int>(comm->member->registered.size());
    --Fake().communicators;
    ++Fake().aborts;
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t MemAlloc(void** memory, size_t bytes) {
  const int device = CurrentDevice();
  if (LookAtFake().device_without_mem_alloc == device) return ncclInvalidUsage;
  if (cudaMalloc(memory, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  SetFake([](FakeState& state) { ++state.nccl_allocations; });
  return ncclSuccess;
}

ncclResult_t MemFree(void* memory) {
  CurrentDevice();
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t CommRegister(ncclComm_t comm, void* buffer, size_t bytes, void** handle) {
  const int device = CurrentDevice();
  absl::MutexLock lock(&FakeMutex());
  if (Fake().device_without_register == device) return ncclInvalidUsage;
  if (!IsFakeMemory(buffer, bytes, device)) return ncclInvalidArgument;
  comm->member->registered.insert(buffer);
  *handle = buffer;
  ++Fake().registrations;
  return ncclSuccess;
}

ncclResult_t CommDeregister(ncclComm_t comm, void* handle) {
  const int device = CurrentDevice();
  absl::MutexLock lock(&FakeMutex());
  if (!IsFakeMemory(handle, 1, device)) Fake().misuses.emplace_back("memory was freed while it was registered");
  if (comm->member->registered.erase(handle) == 0) return ncclInvalidArgument;
  --Fake().registrations;
  return ncclSuccess;
}

}  // namespace

NcclCalls FakeNccl() {
  NcclCalls calls;
  calls.get_error_string = [](ncclResult_t) { return "an error of the fake NCCL"; };
  calls.get_unique_id = GetUniqueId;
  calls.comm_init_rank_config = CommInit;
  calls.comm_finalize = CommFinalize;
  calls.comm_destroy = CommDestroy;
  calls.comm_abort = CommAbort;
  calls.comm_get_async_error = GetAsyncError;
  calls.group_start = GroupStart;
  calls.group_end = GroupEnd;
  calls.all_reduce = AllReduce;
  calls.reduce = Reduce;
  calls.broadcast = Broadcast;
  calls.all_gather = AllGather;
  calls.reduce_scatter = ReduceScatter;
  calls.mem_alloc = MemAlloc;
  calls.mem_free = MemFree;
  calls.comm_register = CommRegister;
  calls.comm_deregister = CommDeregister;
  return calls;
}

}  // namespace hooke
