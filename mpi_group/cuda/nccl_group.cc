#include "mpi_group/cuda/nccl_group.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/all_gather.h"
#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_mean.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/nccl_calls.h"
#include "mpi_group/cuda/polling.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

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

// A Group over one communicator of NCCL, in which ranks have the numbers that they have in `control`.
class NcclGroup : public Group {
 public:
  NcclGroup(Group& control, const NcclCalls& nccl, const NcclGroupOptions& options)
      : control_(control), nccl_(nccl), options_(options) {}

  // Aborts the communicator of a failed group, because destroying it would wait for the other ranks.
  ~NcclGroup() override {
    if (communicator_ == nullptr) return;
    cudaSetDevice(options_.device);
    if (failure_.ok()) {
      nccl_.comm_finalize(communicator_);
      if (AwaitCommunicator(SteadyNow() + options_.deadline).ok()) {
        nccl_.comm_destroy(communicator_);
        return;
      }
    }
    nccl_.comm_abort(communicator_);
  }

  absl::Status Start() {
    int devices = 0;
    absl::Status status = CudaStatus(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (!status.ok()) return absl::FailedPreconditionError(status.message());
    ncclUniqueId id = {};
    if (rank() == 0) status = Checked(nccl_.get_unique_id(&id), "ncclGetUniqueId");
    int32_t words[sizeof(id.internal) / sizeof(int32_t)];
    std::memcpy(words, id.internal, sizeof(words));
    // Broadcast even if rank 0 has an error: then all ranks get an unusable id and fail too, rather than wait.
    status.Update(control_.Broadcast(TensorList(absl::MakeSpan(words)), 0));
    if (!status.ok()) return status;
    std::memcpy(id.internal, words, sizeof(words));
    status = OpenDevice(devices);
    if (!status.ok()) return Fail(status);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    status = Checked(nccl_.comm_init_rank_config(&communicator_, size(), id, rank(), &config), "ncclCommInitRank");
    if (status.ok()) status = AwaitCommunicator(SteadyNow() + options_.deadline);
    return status.ok() ? status : Fail(status);
  }

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    return Run(
        values,
        [&] {
          absl::Status status;
          for (absl::Span<char> piece : values.pieces()) {
            status.Update(Checked(nccl_.all_reduce(piece.data(), piece.data(), piece.size() / SizeOf(values.type()),
                                                   NcclType(values.type()), NcclOp(op), communicator_, stream_.get()),
                                  "ncclAllReduce"));
          }
          return status;
        },
        op, {0, values.size()});
  }

  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    absl::Status status = CheckRoot(root);
    if (!status.ok()) return Refuse(status);
    return Run(values, [&] { return ReducePieces(values, op, root); }, op, {0, rank() == root ? values.size() : 0});
  }

  absl::Status Broadcast(const TensorList& values, int root) override {
    absl::Status status = CheckRoot(root);
    if (!status.ok()) return Refuse(status);
    return Run(values, [&] { return BroadcastPieces(values, root); }, ReduceOp::kSum, {});
  }

  // Calls ncclReduce once for each part, to its owner. NCCL runs the calls between ncclGroupStart and ncclGroupEnd
  // together.
  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    absl::Status status = CheckParts(parts, size(), values.size());
    if (!status.ok()) return Refuse(status);
    return Run(
        values,
        [&] {
          absl::Status result;
          for (int owner = 0; owner < size(); ++owner) {
            result.Update(ReducePieces(values.Slice(parts[owner]), op, owner));
          }
          return result;
        },
        op, parts[rank()]);
  }

  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    absl::Status status = CheckParts(parts, size(), values.size());
    if (!status.ok()) return Refuse(status);
    return Run(values,
               [&] {
                 absl::Status result;
                 for (int owner = 0; owner < size(); ++owner) {
                   result.Update(BroadcastPieces(values.Slice(parts[owner]), owner));
                 }
                 return result;
               },
               ReduceOp::kSum, {});
  }

  void SetDeadline(absl::Duration deadline) override { options_.deadline = deadline; }

  absl::Status Barrier() override {
    const TensorList token(DataType::kFloat32, absl::MakeSpan(token_.get(), sizeof(float)));
    return Run(token,
               [&] {
                 return Checked(nccl_.all_reduce(token_.get(), token_.get(), 1, ncclFloat32, ncclSum, communicator_,
                                                 stream_.get()),
                                "ncclAllReduce");
               },
               ReduceOp::kSum, {});
  }

  // The ranks tell each other whether they have the memory. If one has none, all ranks fail.
  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override {
    if (!failure_.ok()) return failure_;
    cudaSetDevice(options_.device);
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
  // Makes what the group needs on its device.
  absl::Status OpenDevice(int devices) {
    const int device = options_.device;
    if (device < 0 || device >= devices) {
      return absl::FailedPreconditionError(absl::StrCat("device ", device, ": this node has ", devices));
    }
    absl::Status status = CudaStatus(cudaSetDevice(device), absl::StrCat("cudaSetDevice ", device));
    if (!status.ok()) return status;
    absl::StatusOr<Stream> stream = MakeStream();
    if (!stream.ok()) return stream.status();
    stream_ = *std::move(stream);
    absl::StatusOr<DeviceMemory> token = AllocateDeviceMemory(sizeof(float));
    if (!token.ok()) return token.status();
    token_ = *std::move(token);
    return absl::OkStatus();
  }

  absl::Status Checked(ncclResult_t code, absl::string_view what) const { return NcclStatus(nccl_, code, what); }

  // Waits until NCCL has completed its work on the communicator.
  absl::Status AwaitCommunicator(absl::Time deadline) {
    return PollUntil(
        deadline, "the other ranks' communicators",
        [&]() -> absl::StatusOr<bool> {
          const absl::StatusOr<ncclResult_t> state = State();
          if (!state.ok()) return state.status();
          return *state == ncclSuccess;
        },
        [] { return absl::OkStatus(); });
  }

  // What the communicator is doing: ncclSuccess or ncclInProgress. An error that has happened in it is returned as
  // such.
  absl::StatusOr<ncclResult_t> State() {
    ncclResult_t state = ncclSuccess;
    absl::Status status = Checked(nccl_.comm_get_async_error(communicator_, &state), "ncclCommGetAsyncError");
    status.Update(Checked(state, "NCCL"));
    if (!status.ok()) return status;
    return state;
  }

  // Enqueues a collective and waits for it. For kMean, `reduced` is the range of values that this rank has to divide.
  absl::Status Run(const TensorList& values, const std::function<absl::Status()>& enqueue, ReduceOp op,
                   ValueRange reduced) {
    if (!failure_.ok()) return failure_;
    absl::Status status = kinds_.CheckOnDevice(values, options_.device);
    if (!status.ok()) return Refuse(status);
    const absl::Time deadline = SteadyNow() + options_.deadline;
    status = Checked(nccl_.group_start(), "ncclGroupStart");
    status.Update(enqueue());
    status.Update(Checked(nccl_.group_end(), "ncclGroupEnd"));
    if (status.ok()) status = AwaitCommunicator(deadline);
    if (status.ok() && op == ReduceOp::kMean) {
      cudaSetDevice(options_.device);
      status = StartMean(values.Slice(reduced), size(), stream_.get());
    }
    if (status.ok()) status = Finish(deadline);
    return status.ok() ? status : Fail(status);
  }

  absl::Status Finish(absl::Time deadline) {
    return AwaitStream(stream_.get(), deadline, [&] { return State().status(); });
  }

  absl::Status ReducePieces(const TensorList& values, ReduceOp op, int root) {
    absl::Status status;
    for (absl::Span<char> piece : values.pieces()) {
      status.Update(Checked(nccl_.reduce(piece.data(), piece.data(), piece.size() / SizeOf(values.type()),
                                         NcclType(values.type()), NcclOp(op), root, communicator_, stream_.get()),
                            "ncclReduce"));
    }
    return status;
  }

  absl::Status BroadcastPieces(const TensorList& values, int root) {
    absl::Status status;
    for (absl::Span<char> piece : values.pieces()) {
      status.Update(Checked(
          nccl_.broadcast(piece.data(), piece.data(), piece.size(), ncclInt8, root, communicator_, stream_.get()),
          "ncclBroadcast"));
    }
    return status;
  }

  absl::Status CheckRoot(int root) const {
    if (root >= 0 && root < size()) return absl::OkStatus();
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
  const NcclCalls nccl_;
  NcclGroupOptions options_;
  ncclComm_t communicator_ = nullptr;
  Stream stream_;
  PointerKinds kinds_;
  DeviceMemory token_;  // One float for barriers.
  std::vector<DeviceMemory> memory_;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Group>> MakeNcclGroup(Group& control, const NcclCalls& nccl,
                                                     const NcclGroupOptions& options) {
  auto group = std::make_unique<NcclGroup>(control, nccl, options);
  absl::Status status = group->Start();
  if (!status.ok()) return status;
  return group;
}

}  // namespace hooke
