#include "mpi_group/cuda/nccl_group.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/collectives/all_gather.h"
#include "mpi_group/cuda/agree_on_status.h"
#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_mean.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/device_scope.h"
#include "mpi_group/cuda/even_block.h"
#include "mpi_group/cuda/nccl_memory.h"
#include "mpi_group/cuda/polling.h"
#include "mpi_group/cuda/stream_order.h"
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

// NCCL does not say how its means of integers are rounded. So the group sums integers, and divides them by a kernel of
// its own, as groups on the host do.
bool DividesItself(DataType type, ReduceOp op) {
  return op == ReduceOp::kMean && (type == DataType::kInt32 || type == DataType::kInt64);
}

ncclRedOp_t NcclOp(DataType type, ReduceOp op) {
  if (op == ReduceOp::kMin) return ncclMin;
  if (op == ReduceOp::kMax) return ncclMax;
  return op == ReduceOp::kMean && !DividesItself(type, op) ? ncclAvg : ncclSum;
}

// A group over one communicator of NCCL, in which ranks have the numbers that they have in `control`.
class NcclGroup : public DeviceGroup {
 public:
  NcclGroup(Group& control, const NcclCalls& nccl, const NcclGroupOptions& options)
      : control_(control), nccl_(nccl), options_(options) {}

  // Destroys what belongs to the device while it is current. Registrations end before the communicator does, and it
  // ends before its memory is freed.
  ~NcclGroup() override {
    const DeviceScope scope(options_.device);
    CloseCommunicator();
    memory_.clear();
    token_.reset();
    order_ = StreamOrder();
    stream_.reset();
  }

  // `status` is OK, or an error that this rank already has.
  absl::Status Start(absl::Status status) {
    ncclUniqueId id = {};
    if (status.ok()) status = OpenDevice();
    if (status.ok() && rank() == 0) {
      const DeviceScope scope(options_.device);
      status = Checked(nccl_.get_unique_id(&id), "ncclGetUniqueId");
    }
    status = AgreeOnStatus(control_, status);
    if (!status.ok()) return Fail(status);
    int32_t words[sizeof(id.internal) / sizeof(int32_t)];
    std::memcpy(words, id.internal, sizeof(words));
    status = control_.Broadcast(TensorList(absl::MakeSpan(words)), 0);
    if (!status.ok()) return Fail(status);
    std::memcpy(id.internal, words, sizeof(words));
    status = AgreeOnStatus(control_, OpenCommunicator(id));
    return status.ok() ? status : Fail(status);
  }

  int rank() const override { return control_.rank(); }
  int size() const override { return control_.size(); }

  void UseStream(cudaStream_t stream) override { order_.Use(stream); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    return Run(values,
               [&] {
                 return EachPiece(values, "ncclAllReduce", [&](absl::Span<char> piece, uint64_t count) {
                   return nccl_.all_reduce(piece.data(), piece.data(), count, NcclType(values.type()),
                                           NcclOp(values.type(), op), communicator_, stream_.get());
                 });
               },
               op, {0, values.size()});
  }

  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    absl::Status status = CheckRoot(root, size());
    if (!status.ok()) return Refuse(status);
    return Run(values, [&] { return ReducePieces(values, op, root); }, op, {0, rank() == root ? values.size() : 0});
  }

  absl::Status Broadcast(const TensorList& values, int root) override {
    absl::Status status = CheckRoot(root, size());
    if (!status.ok()) return Refuse(status);
    return Run(values, [&] { return BroadcastPieces(values, root); });
  }

  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    absl::Status status = CheckParts(parts, size(), values.size());
    if (!status.ok()) return Refuse(status);
    return Run(
        values, [&] { return ReduceParts(values, parts, op); }, op, parts[rank()]);
  }

  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    absl::Status status = CheckParts(parts, size(), values.size());
    if (!status.ok()) return Refuse(status);
    return Run(values, [&] { return GatherParts(values, parts); });
  }

  void SetDeadline(absl::Duration deadline) override { options_.deadline = deadline; }

  absl::Status Barrier() override {
    return AllReduce(TensorList(DataType::kFloat32, absl::MakeSpan(token_.get(), sizeof(float))), ReduceOp::kSum);
  }

  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override {
    if (!failure_.ok()) return failure_;
    const DeviceScope scope(options_.device);
    absl::StatusOr<NcclMemory> memory = AllocateNcclMemory(nccl_, bytes);
    absl::Status status = AgreeOnStatus(control_, scope.status().ok() ? memory.status() : scope.status());
    if (!status.ok()) return Fail(status);
    if (bytes == 0) return absl::Span<char>();
    memory_.push_back({*std::move(memory)});
    status = RegisterOnAllRanks(memory_.back(), bytes);
    if (!status.ok()) return Fail(status);
    return absl::MakeSpan(memory_.back().memory.get(), bytes);
  }

 private:
  struct Allocation {
    NcclMemory memory;
    void* registration = nullptr;  // Null: not registered.
  };

  // Makes what the group needs on its device.
  absl::Status OpenDevice() {
    if (absl::Status status = CheckDevice(options_.device); !status.ok()) return status;
    const DeviceScope scope(options_.device);
    if (!scope.status().ok()) return scope.status();
    absl::StatusOr<Stream> stream = MakeStream();
    if (!stream.ok()) return stream.status();
    stream_ = *std::move(stream);
    absl::StatusOr<DeviceMemory> token = AllocateDeviceMemory(sizeof(float));
    if (!token.ok()) return token.status();
    token_ = *std::move(token);
    return order_.Open();
  }

  absl::Status OpenCommunicator(const ncclUniqueId& id) {
    const DeviceScope scope(options_.device);
    if (!scope.status().ok()) return scope.status();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    absl::Status status =
        Checked(nccl_.comm_init_rank_config(&communicator_, size(), id, rank(), &config), "ncclCommInitRank");
    return status.ok() ? AwaitCommunicator(SteadyNow() + options_.deadline) : status;
  }

  // Ends the communicator of a group that has not failed. If other ranks do not end theirs, it is aborted.
  void CloseCommunicator() {
    if (communicator_ == nullptr) return;
    for (Allocation& allocation : memory_) Deregister(allocation);
    absl::Status status = Checked(nccl_.comm_finalize(communicator_), "ncclCommFinalize");
    if (status.ok()) status = AwaitCommunicator(SteadyNow() + options_.deadline);
    if (status.ok()) {
      nccl_.comm_destroy(communicator_);
    } else {
      nccl_.comm_abort(communicator_);
    }
    communicator_ = nullptr;
  }

  // Registers memory if all ranks can, for NCCL's paths without copies need the buffers of all of them.
  absl::Status RegisterOnAllRanks(Allocation& allocation, uint64_t bytes) {
    const bool can = allocation.memory.get_deleter().free != nullptr && nccl_.comm_register != nullptr &&
                     nccl_.comm_deregister != nullptr;
    void* registration = nullptr;
    if (can && nccl_.comm_register(communicator_, allocation.memory.get(), bytes, &registration) == ncclSuccess) {
      allocation.registration = registration;
    }
    int32_t without[] = {allocation.registration == nullptr ? 1 : 0};
    absl::Status status = control_.AllReduce(TensorList(absl::MakeSpan(without)), ReduceOp::kMax);
    if (status.ok() && without[0] != 0) Deregister(allocation);
    return status;
  }

  void Deregister(Allocation& allocation) {
    if (allocation.registration != nullptr) nccl_.comm_deregister(communicator_, allocation.registration);
    allocation.registration = nullptr;
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

  // Returns ncclInProgress while the communicator is at work, else ncclSuccess. Returns the error if one has happened
  // in the communicator.
  absl::StatusOr<ncclResult_t> State() {
    ncclResult_t state = ncclSuccess;
    absl::Status status = Checked(nccl_.comm_get_async_error(communicator_, &state), "ncclCommGetAsyncError");
    status.Update(Checked(state, "NCCL"));
    if (!status.ok()) return status;
    return state;
  }

  // Enqueues a collective and waits for it. For a kMean that the group divides itself, `reduced` is the range of values
  // that this rank has to divide.
  absl::Status Run(const TensorList& values, const std::function<absl::Status()>& enqueue, ReduceOp op = ReduceOp::kSum,
                   ValueRange reduced = {}) {
    if (!failure_.ok()) return failure_;
    const DeviceScope scope(options_.device);
    absl::Status status = scope.status();
    if (status.ok()) status = kinds_.CheckOnDevice(values, options_.device);
    if (!status.ok()) return Fail(status);
    const absl::Time deadline = SteadyNow() + options_.deadline;
    status = order_.Begin(stream_.get());
    if (status.ok()) status = Enqueue(enqueue);
    if (status.ok()) status = AwaitCommunicator(deadline);
    if (status.ok() && DividesItself(values.type(), op)) {
      status = StartMean(values.Slice(reduced), size(), stream_.get());
    }
    if (status.ok()) status = order_.End(stream_.get());
    if (status.ok()) status = AwaitStream(stream_.get(), deadline, [&] { return State().status(); });
    return status.ok() ? status : Fail(status);
  }

  // NCCL runs the calls of `enqueue` together.
  absl::Status Enqueue(const std::function<absl::Status()>& enqueue) {
    absl::Status status = Checked(nccl_.group_start(), "ncclGroupStart");
    if (!status.ok()) return status;
    status = enqueue();
    status.Update(Checked(nccl_.group_end(), "ncclGroupEnd"));
    return status;
  }

  // Calls call(piece, number of its values) for each piece of the list.
  template <typename Call>
  absl::Status EachPiece(const TensorList& values, absl::string_view what, const Call& call) const {
    absl::Status status;
    for (absl::Span<char> piece : values.pieces()) {
      status.Update(Checked(call(piece, piece.size() / SizeOf(values.type())), what));
    }
    return status;
  }

  absl::Status ReducePieces(const TensorList& values, ReduceOp op, int root) {
    return EachPiece(values, "ncclReduce", [&](absl::Span<char> piece, uint64_t count) {
      return nccl_.reduce(piece.data(), piece.data(), count, NcclType(values.type()), NcclOp(values.type(), op), root,
                          communicator_, stream_.get());
    });
  }

  absl::Status BroadcastPieces(const TensorList& values, int root) {
    return EachPiece(values, "ncclBroadcast", [&](absl::Span<char> piece, uint64_t /*count*/) {
      return nccl_.broadcast(piece.data(), piece.data(), piece.size(), ncclInt8, root, communicator_, stream_.get());
    });
  }

  // Calls ncclReduceScatter once, or, for parts that it cannot take, ncclReduce for each part, to its owner.
  absl::Status ReduceParts(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) {
    if (const std::optional<absl::Span<char>> block = EvenBlock(values, parts)) {
      char* const own = block->data() + parts[rank()].size() * SizeOf(values.type()) * rank();
      return Checked(nccl_.reduce_scatter(block->data(), own, parts[rank()].size(), NcclType(values.type()),
                                          NcclOp(values.type(), op), communicator_, stream_.get()),
                     "ncclReduceScatter");
    }
    absl::Status status;
    for (int owner = 0; owner < size(); ++owner) {
      status.Update(ReducePieces(values.Slice(parts[owner]), op, owner));
    }
    return status;
  }

  // Calls ncclAllGather once, or, for parts that it cannot take, ncclBroadcast for each part, from its owner.
  absl::Status GatherParts(const TensorList& values, absl::Span<const ValueRange> parts) {
    if (const std::optional<absl::Span<char>> block = EvenBlock(values, parts)) {
      const uint64_t bytes = block->size() / size();
      return Checked(nccl_.all_gather(block->data() + bytes * rank(), block->data(), bytes, ncclInt8, communicator_,
                                      stream_.get()),
                     "ncclAllGather");
    }
    absl::Status status;
    for (int owner = 0; owner < size(); ++owner) {
      status.Update(BroadcastPieces(values.Slice(parts[owner]), owner));
    }
    return status;
  }

  // Fails the group after invalid arguments. The other ranks are in this call, or will be, and would mistake this
  // rank's next call for this one.
  absl::Status Refuse(const absl::Status& status) { return failure_.ok() ? Fail(status) : failure_; }

  // Makes every later call return this error. Aborts the communicator: its kernels would wait for the other ranks, and
  // occupy the device, until the process ends. The communicator takes its registrations along.
  absl::Status Fail(const absl::Status& status) {
    failure_ =
        absl::Status(status.code(), absl::StrCat("NCCL group, rank ", rank(), " of ", size(), " (deadline ",
                                                 absl::FormatDuration(options_.deadline), "): ", status.message()));
    if (communicator_ != nullptr) {
      const DeviceScope scope(options_.device);
      nccl_.comm_abort(communicator_);
      communicator_ = nullptr;
    }
    return failure_;
  }

  Group& control_;
  const NcclCalls nccl_;
  NcclGroupOptions options_;
  ncclComm_t communicator_ = nullptr;  // Null before Start, and after a failure.
  Stream stream_;
  StreamOrder order_;
  PointerKinds kinds_;
  DeviceMemory token_;  // One float for barriers.
  std::vector<Allocation> memory_;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeNcclGroup(Group& control, const absl::StatusOr<NcclCalls>& nccl,
                                                           const NcclGroupOptions& options) {
  auto group = std::make_unique<NcclGroup>(control, nccl.ok() ? *nccl : NcclCalls(), options);
  absl::Status status = group->Start(nccl.status());
  if (!status.ok()) return status;
  return group;
}

}  // namespace hooke
