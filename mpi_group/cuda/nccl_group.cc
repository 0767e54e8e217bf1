#include "mpi_group/cuda/nccl_group.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/all_gather.h"
#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_mean.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/device_reduce.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// Converts a code of NCCL. ncclInProgress counts as OK: the group's communicators are non-blocking, and the group waits
// for their work with a deadline.
absl::Status NcclStatus(ncclResult_t code, absl::string_view what) {
  if (code == ncclSuccess || code == ncclInProgress) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", ncclGetErrorString(code)));
}

ncclDataType_t NcclType(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return ncclFloat32;
    case DataType::kFloat64:
      return ncclFloat64;
    case DataType::kBFloat16:
      return ncclBfloat16;
    case DataType::kFloat16:
      return ncclFloat16;
    case DataType::kInt32:
      return ncclInt32;
    case DataType::kInt64:
      break;
  }
  return ncclInt64;
}

// Returns NCCL's operation for `op`. NCCL computes a kMean as a sum, and one kernel for all types divides it
// afterwards.
ncclRedOp_t NcclOp(ReduceOp op) {
  if (op == ReduceOp::kMin) return ncclMin;
  return op == ReduceOp::kMax ? ncclMax : ncclSum;
}

// A device of this rank and its communicator. Its NCCL rank is rank * devices per rank + index of the device.
struct Lane {
  int device = 0;
  ncclComm_t communicator = nullptr;
  Stream stream;
  PointerKinds kinds;
  DeviceMemory token;  // One float for barriers.
};

class NcclGroupOfLanes : public NcclGroup {
 public:
  NcclGroupOfLanes(Group& control, NcclGroupOptions options) : control_(control), options_(std::move(options)) {}

  // Aborts the communicators of a failed group, because destroying them would wait for the other ranks.
  ~NcclGroupOfLanes() override {
    for (Lane& lane : lanes_) {
      cudaSetDevice(lane.device);
      if (lane.communicator == nullptr) continue;
      if (failure_.ok()) {
        ncclCommFinalize(lane.communicator);
        const absl::Time deadline = SteadyNow() + options_.deadline;
        if (!AwaitCommunicator(lane, deadline).ok()) {
          ncclCommAbort(lane.communicator);
          continue;
        }
        ncclCommDestroy(lane.communicator);
      } else {
        ncclCommAbort(lane.communicator);
      }
    }
  }

  absl::Status Start() {
    int devices = 0;
    absl::Status status = CudaStatus(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (!status.ok()) return absl::FailedPreconditionError(status.message());
    ncclUniqueId id = {};
    if (rank() == 0) status = NcclStatus(ncclGetUniqueId(&id), "ncclGetUniqueId");
    int32_t words[sizeof(id.internal) / sizeof(int32_t)];
    std::memcpy(words, id.internal, sizeof(words));
    // Broadcast even if rank 0 has an error: then all ranks get an unusable id and fail too, rather than wait.
    status.Update(control_.Broadcast(TensorList(absl::MakeSpan(words)), 0));
    if (!status.ok()) return status;
    std::memcpy(id.internal, words, sizeof(words));

    // NCCL writes into the lanes until the communicators are made, so they must not move.
    lanes_.reserve(options_.devices.size());
    status = NcclStatus(ncclGroupStart(), "ncclGroupStart");
    for (size_t i = 0; i < options_.devices.size() && status.ok(); ++i) {
      status = StartLane(id, static_cast<int>(i), devices);
    }
    status.Update(NcclStatus(ncclGroupEnd(), "ncclGroupEnd"));
    if (!status.ok()) return Fail(status);
    const absl::Time deadline = SteadyNow() + options_.deadline;
    for (Lane& lane : lanes_) {
      status = AwaitCommunicator(lane, deadline);
      if (!status.ok()) return Fail(status);
    }
    return absl::OkStatus();
  }

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    absl::Status status = CheckOneDevice();
    return status.ok() ? AllReduceReplicas({values}, op) : Refuse(status);
  }

  absl::Status AllReduceReplicas(absl::Span<const TensorList> replicas, ReduceOp op) override {
    if (replicas.size() != lanes_.size()) {
      return Refuse(absl::InvalidArgumentError(
          absl::StrCat(replicas.size(), " vectors for ", lanes_.size(), " devices; one for each is needed")));
    }
    return Run(replicas,
               [&](Lane& lane, const TensorList& values) {
                 absl::Status status;
                 for (absl::Span<char> piece : values.pieces()) {
                   status.Update(NcclStatus(
                       ncclAllReduce(piece.data(), piece.data(), piece.size() / SizeOf(values.type()),
                                     NcclType(values.type()), NcclOp(op), lane.communicator, lane.stream.get()),
                       "ncclAllReduce"));
                 }
                 return status;
               },
               op, {});
  }

  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    absl::Status status = CheckRoot(root);
    if (!status.ok()) return Refuse(status);
    return Run(
        {values}, [&](Lane& lane, const TensorList& list) { return ReducePieces(lane, list, op, root); }, op,
        rank() == root ? absl::optional<ValueRange>() : ValueRange());
  }

  absl::Status Broadcast(const TensorList& values, int root) override {
    absl::Status status = CheckRoot(root);
    if (!status.ok()) return Refuse(status);
    return Run(
        {values}, [&](Lane& lane, const TensorList& list) { return BroadcastPieces(lane, list, root); }, ReduceOp::kSum,
        ValueRange());
  }

  // Calls ncclReduce once for each part, to its owner. NCCL runs the calls between ncclGroupStart and ncclGroupEnd
  // together.
  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    absl::Status status = CheckOneDevice();
    status.Update(CheckParts(parts, size(), values.size()));
    if (!status.ok()) return Refuse(status);
    return Run(
        {values},
        [&](Lane& lane, const TensorList& list) {
          absl::Status result;
          for (int owner = 0; owner < size(); ++owner) {
            result.Update(ReducePieces(lane, list.Slice(parts[owner]), op, owner));
          }
          return result;
        },
        op, parts[rank()]);
  }

  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    absl::Status status = CheckOneDevice();
    status.Update(CheckParts(parts, size(), values.size()));
    if (!status.ok()) return Refuse(status);
    return Run(
        {values},
        [&](Lane& lane, const TensorList& list) {
          absl::Status result;
          for (int owner = 0; owner < size(); ++owner) {
            result.Update(BroadcastPieces(lane, list.Slice(parts[owner]), owner));
          }
          return result;
        },
        ReduceOp::kSum, ValueRange());
  }

  void SetDeadline(absl::Duration deadline) override { options_.deadline = deadline; }

  absl::Status Barrier() override {
    std::vector<TensorList> tokens;
    tokens.reserve(lanes_.size());
    for (const Lane& lane : lanes_)
      tokens.emplace_back(DataType::kFloat32, absl::MakeSpan(lane.token.get(), sizeof(float)));
    return Run(
        tokens,
        [&](Lane& lane, const TensorList&) {
          return NcclStatus(ncclAllReduce(lane.token.get(), lane.token.get(), 1, ncclFloat32, ncclSum,
                                          lane.communicator, lane.stream.get()),
                            "ncclAllReduce");
        },
        ReduceOp::kSum, ValueRange());
  }

  // The ranks tell each other whether they have the memory. If one has none, all ranks fail.
  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override {
    if (!failure_.ok()) return failure_;
    cudaSetDevice(lanes_[0].device);
    absl::StatusOr<DeviceMemory> memory = AllocateDeviceMemory(bytes);
    int32_t without[] = {memory.ok() ? -1 : rank()};
    absl::Status status = control_.AllReduce(TensorList(absl::MakeSpan(without)), ReduceOp::kMax);
    if (!memory.ok()) return Fail(memory.status());
    if (!status.ok()) return Fail(status);
    if (without[0] >= 0) {
      return Fail(absl::ResourceExhaustedError(
          absl::StrCat("rank ", without[0], " could not allocate ", bytes, " bytes of device memory")));
    }
    if (bytes == 0) return absl::Span<char>();
    memory_.push_back(*std::move(memory));
    return absl::MakeSpan(memory_.back().get(), bytes);
  }

 private:
  using Enqueue = std::function<absl::Status(Lane&, const TensorList&)>;

  absl::Status StartLane(const ncclUniqueId& id, int index, int devices) {
    Lane lane;
    lane.device = options_.devices[index];
    if (lane.device < 0 || lane.device >= devices) {
      return absl::FailedPreconditionError(absl::StrCat("device ", lane.device, ": this node has ", devices));
    }
    absl::Status status = CudaStatus(cudaSetDevice(lane.device), absl::StrCat("cudaSetDevice ", lane.device));
    if (!status.ok()) return status;
    absl::StatusOr<Stream> stream = MakeStream();
    if (!stream.ok()) return stream.status();
    lane.stream = *std::move(stream);
    absl::StatusOr<DeviceMemory> token = AllocateDeviceMemory(sizeof(float));
    if (!token.ok()) return token.status();
    lane.token = *std::move(token);
    lanes_.push_back(std::move(lane));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const int per_rank = static_cast<int>(options_.devices.size());
    return NcclStatus(
        ncclCommInitRankConfig(&lanes_.back().communicator, size() * per_rank, id, rank() * per_rank + index, &config),
        "ncclCommInitRank");
  }

  // Waits until NCCL has completed its work on the communicator.
  absl::Status AwaitCommunicator(Lane& lane, absl::Time deadline) {
    while (true) {
      ncclResult_t state = ncclSuccess;
      absl::Status status = NcclStatus(ncclCommGetAsyncError(lane.communicator, &state), "ncclCommGetAsyncError");
      status.Update(NcclStatus(state, "NCCL"));
      if (!status.ok() || state == ncclSuccess) return status;
      if (SteadyNow() >= deadline) {
        return absl::DeadlineExceededError("waited for the other ranks' communicators until the deadline");
      }
      sched_yield();
    }
  }

  // Enqueues a collective on every lane and waits for it; lists[i] is the list of lane i. For kMean, `reduced` is the
  // range of values that this rank has to divide; nullopt: all values.
  absl::Status Run(absl::Span<const TensorList> lists, const Enqueue& enqueue, ReduceOp op,
                   absl::optional<ValueRange> reduced) {
    if (!failure_.ok()) return failure_;
    absl::Status status;
    for (size_t i = 0; i < lists.size(); ++i) status.Update(lanes_[i].kinds.CheckOnDevice(lists[i], lanes_[i].device));
    if (!status.ok()) return Refuse(status);
    const absl::Time deadline = SteadyNow() + options_.deadline;
    status = NcclStatus(ncclGroupStart(), "ncclGroupStart");
    for (size_t i = 0; i < lists.size(); ++i) status.Update(enqueue(lanes_[i], lists[i]));
    status.Update(NcclStatus(ncclGroupEnd(), "ncclGroupEnd"));
    for (size_t i = 0; i < lists.size() && status.ok(); ++i) status = AwaitCommunicator(lanes_[i], deadline);
    for (size_t i = 0; i < lists.size() && status.ok() && op == ReduceOp::kMean; ++i) {
      const ValueRange range = reduced.value_or(ValueRange{0, lists[i].size()});
      cudaSetDevice(lanes_[i].device);
      status = StartMean(lists[i].Slice(range), size() * static_cast<int>(lanes_.size()), lanes_[i].stream.get());
    }
    for (size_t i = 0; i < lists.size() && status.ok(); ++i) status = Finish(lanes_[i], deadline);
    return status.ok() ? status : Fail(status);
  }

  absl::Status Finish(Lane& lane, absl::Time deadline) {
    return AwaitStream(lane.stream.get(), deadline, [&] {
      ncclResult_t state = ncclSuccess;
      absl::Status status = NcclStatus(ncclCommGetAsyncError(lane.communicator, &state), "ncclCommGetAsyncError");
      status.Update(NcclStatus(state, "NCCL"));
      return status;
    });
  }

  static absl::Status ReducePieces(Lane& lane, const TensorList& values, ReduceOp op, int root) {
    absl::Status status;
    for (absl::Span<char> piece : values.pieces()) {
      status.Update(
          NcclStatus(ncclReduce(piece.data(), piece.data(), piece.size() / SizeOf(values.type()),
                                NcclType(values.type()), NcclOp(op), root, lane.communicator, lane.stream.get()),
                     "ncclReduce"));
    }
    return status;
  }

  static absl::Status BroadcastPieces(Lane& lane, const TensorList& values, int root) {
    absl::Status status;
    for (absl::Span<char> piece : values.pieces()) {
      status.Update(NcclStatus(
          ncclBroadcast(piece.data(), piece.data(), piece.size(), ncclInt8, root, lane.communicator, lane.stream.get()),
          "ncclBroadcast"));
    }
    return status;
  }

  absl::Status CheckOneDevice() const {
    if (lanes_.size() == 1) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("this rank has ", lanes_.size(), " devices; only AllReduceReplicas works on several"));
  }

  absl::Status CheckRoot(int root) const {
    absl::Status status = CheckOneDevice();
    if (!status.ok() || (root >= 0 && root < size())) return status;
    return absl::InvalidArgumentError(absl::StrCat("root ", root, ": the group has ", size(), " ranks"));
  }

  // Fails the group after invalid arguments. The other ranks are in this call, or will be, and would mistake this
  // rank's next call for this one.
  absl::Status Refuse(const absl::Status& status) { return failure_.ok() ? Fail(status) : failure_; }

  // Makes every later call return this error.
  absl::Status Fail(const absl::Status& status) {
    failure_ =
        absl::Status(status.code(), absl::StrCat("NCCL group, rank ", rank(), " of ", size(), " (deadline ",
                                                 absl::FormatDuration(options_.deadline), "): ", status.message()));
    return failure_;
  }

  Group& control_;
  NcclGroupOptions options_;
  std::vector<Lane> lanes_;
  std::vector<DeviceMemory> memory_;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclGroup>> MakeNcclGroup(Group& control, const NcclGroupOptions& options) {
  if (options.devices.empty() || options.devices.size() > kDevicePointersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.devices.size(), " devices; a rank takes 1 to ", kDevicePointersMax));
  }
  auto group = std::make_unique<NcclGroupOfLanes>(control, options);
  absl::Status status = group->Start();
  if (!status.ok()) return status;
  return group;
}

}  // namespace hooke
