#include "mpi_group/cuda/staged_group.h"

#include <cuda_runtime_api.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/all_gather.h"
#include "mpi_group/collectives/barrier.h"
#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_accumulator.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/device_scope.h"
#include "mpi_group/cuda/staged_passes.h"
#include "mpi_group/cuda/staging.h"
#include "mpi_group/cuda/stream_order.h"
#include "mpi_group/operation.h"
#include "mpi_group/transport/call_label.h"
#include "mpi_group/transport/recent_calls.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

class StagedGroup : public DeviceGroup {
 public:
  StagedGroup(std::unique_ptr<Transport> transport, const StagedGroupOptions& options)
      : options_(options), transport_(std::move(transport)) {}

  // Destroys what belongs to the device while it is current. The staging outlives the transport, whose unfinished
  // messages use its memory.
  ~StagedGroup() override {
    const DeviceScope scope(options_.device);
    transport_.reset();
    staging_.reset();
    accumulator_.reset();
    order_ = StreamOrder();
    memory_.clear();
  }

  absl::Status Start() {
    absl::Status status = CheckDevice(options_.device);
    if (!status.ok()) return status;
    const DeviceScope scope(options_.device);
    status = scope.status();
    if (status.ok()) status = order_.Open();
    if (!status.ok()) return status;
    absl::StatusOr<std::unique_ptr<Staging>> staging = Staging::Create(options_.chunk_bytes);
    if (!staging.ok()) return staging.status();
    staging_ = *std::move(staging);
    return absl::OkStatus();
  }

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    return Run(LabelOf(Operation::kAllReduce, op), values,
               [&](absl::Time deadline) { return AllReduceOfParts(values, op, deadline); });
  }

  // All ranks get the result, although only the root needs it.
  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    return Run(LabelOf(Operation::kReduce, op, root), values, [&](absl::Time deadline) {
      absl::Status status = CheckRoot(root, size());
      return status.ok() ? AllReduceOfParts(values, op, deadline) : status;
    });
  }

  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    return Run(LabelOf(Operation::kReduceScatter, op, -1, parts), values, [&](absl::Time deadline) {
      absl::Status status = CheckParts(parts, size(), values.size());
      return status.ok() ? Scatter(values, parts, op, deadline) : status;
    });
  }

  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    return Run(LabelOf(Operation::kAllGather, std::nullopt, -1, parts), values, [&](absl::Time deadline) {
      absl::Status status = CheckParts(parts, size(), values.size());
      return status.ok() ? Gather(values, parts, deadline) : status;
    });
  }

  absl::Status Broadcast(const TensorList& values, int root) override {
    return Run(LabelOf(Operation::kBroadcast, std::nullopt, root), values, [&](absl::Time deadline) {
      absl::Status status = CheckRoot(root, size());
      return status.ok() ? Chain(values, root, deadline) : status;
    });
  }

  absl::Status Barrier() override {
    return Run(LabelOf(Operation::kBarrier, std::nullopt), TensorList(),
               [&](absl::Time deadline) { return DisseminationBarrier(*transport_, deadline); });
  }

  void UseStream(cudaStream_t stream) override { order_.Use(stream); }

  void SetDeadline(absl::Duration deadline) override { options_.deadline = deadline; }

  // Ends with a barrier, so that all ranks get an error if one cannot allocate.
  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override {
    CallLabel label;
    label.operation = "shared allocation";
    label.values = bytes;
    DeviceMemory allocated;
    absl::Status status = Run(label, [&](absl::Time deadline) {
      absl::StatusOr<DeviceMemory> memory = AllocateDeviceMemory(bytes);
      if (!memory.ok()) return memory.status();
      allocated = *std::move(memory);
      return DisseminationBarrier(*transport_, deadline);
    });
    if (!status.ok()) return status;
    if (bytes == 0) return absl::Span<char>();
    memory_.push_back(std::move(allocated));
    return absl::MakeSpan(memory_.back().get(), bytes);
  }

 private:
  // The label of a call, without its values. `detail` covers parts and chunk size, on which ranks must agree too.
  CallLabel LabelOf(Operation operation, std::optional<ReduceOp> op, int root = -1,
                    absl::Span<const ValueRange> parts = {}) const {
    CallLabel label;
    label.operation = NameOf(operation);
    label.op = op;
    label.root = root;
    label.detail = Mix(HashOf(parts), options_.chunk_bytes);
    return label;
  }

  template <typename Collective>
  absl::Status Run(CallLabel label, const TensorList& values, const Collective& collective) {
    label.values = values.size();
    label.type = values.type();
    return Run(label, [&](absl::Time deadline) {
      absl::Status status = kinds_.CheckOnDevice(values, options_.device);
      return status.ok() ? collective(deadline) : status;
    });
  }

  // Runs a call and settles a failure with the other ranks, so that all get the same error soon. From then on every
  // call returns that error.
  template <typename Collective>
  absl::Status Run(const CallLabel& label, const Collective& collective) {
    if (!failure_.ok()) return failure_;
    const DeviceScope scope(options_.device);
    calls_.Add(label);
    const absl::Time now = SteadyNow();
    const absl::Time deadline = now + options_.deadline;
    calls_.Tell(*transport_, now);
    absl::Status status = scope.status();
    if (status.ok()) status = order_.Begin(staging_->stream());
    if (status.ok()) status = collective(deadline);
    if (status.ok()) status = order_.End(staging_->stream());
    if (status.ok()) status = staging_->AwaitAll(deadline);
    if (status.ok()) return status;
    const std::string what =
        absl::StrCat(label.operation, " of ", label.values, " ", label.type.has_value() ? NameOf(*label.type) : "bytes",
                     " on device ", options_.device);
    failure_ = calls_.Settle(*transport_, status, {what, now, options_.deadline});
    // Work that is still under way uses the caller's memory, so wait for it. Its result no longer matters.
    staging_->AwaitAll(deadline).IgnoreError();
    return failure_;
  }

  absl::Status AllReduceOfParts(const TensorList& values, ReduceOp op, absl::Time deadline) {
    const Parts parts = EvenParts(values.size(), size());
    absl::Status status = Scatter(values, parts, op, deadline);
    return status.ok() ? Gather(values, parts, deadline) : status;
  }

  // Does what RingReduceScatter does. The last step divides means. Sums of 16-bit values travel as float32 and are
  // rounded afterwards.
  absl::Status Scatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op, absl::Time deadline) {
    const absl::StatusOr<TensorList> sums = accumulator_->Start(values, op, size(), staging_->stream());
    if (!sums.ok()) return sums.status();
    absl::Status status = RunAll(*sums, ReduceScatterPasses(rank(), parts, ChunkValues(*sums)), op, deadline);
    return status.ok() ? accumulator_->StartStoring(parts[rank()], staging_->stream()) : status;
  }

  // Does what RingAllGather does.
  absl::Status Gather(const TensorList& values, absl::Span<const ValueRange> parts, absl::Time deadline) {
    return RunAll(values, AllGatherPasses(rank(), parts, ChunkValues(values)), std::nullopt, deadline);
  }

  // Broadcasts along a chain from the root, chunk by chunk.
  absl::Status Chain(const TensorList& values, int root, absl::Time deadline) {
    const int place = (rank() - root + size()) % size();
    const ValueRange all = {0, values.size()};
    const uint64_t chunk = ChunkValues(values);
    for (uint64_t i = 0; i < ChunkCount(all, chunk); ++i) {
      const TensorList part = values.Slice(Chunk(all, i, chunk));
      if (place > 0) {
        absl::Status status = Exchange(i, TensorList(), part, deadline);
        if (status.ok()) status = staging_->StartWriting(i, part);
        if (!status.ok()) return status;
      }
      if (place + 1 < size()) {
        absl::Status status = staging_->StartOutgoing(i, part);
        if (status.ok()) status = Exchange(i, part, TensorList(), deadline);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // Runs the passes. Received values are reduced into the list by `op`, or replace its values if there is no `op`. The
  // outgoing values of the next passes leave the device while this pass's messages travel, unless they depend on the
  // values that these messages bring.
  absl::Status RunAll(const TensorList& values, const std::vector<StagedPass>& passes, std::optional<ReduceOp> op,
                      absl::Time deadline) {
    uint64_t started = 0;
    for (uint64_t i = 0; i < passes.size(); ++i) {
      while (started < passes.size() && started < i + Staging::kSlots && passes[started].needs <= i) {
        absl::Status status = staging_->StartOutgoing(started, values.Slice(passes[started].out));
        if (!status.ok()) return status;
        ++started;
      }
      const TensorList in = values.Slice(passes[i].in);
      absl::Status status = Exchange(i, values.Slice(passes[i].out), in, deadline);
      if (status.ok() && !in.empty()) {
        status = op.has_value() ? staging_->StartReducing(i, in, {in.type(), *op, passes[i].last ? size() : 0})
                                : staging_->StartWriting(i, in);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Exchanges the messages of chunk `index`. It sends the bytes of `out` to the next rank once they have left the
  // device, and receives bytes for `in` from the previous rank.
  absl::Status Exchange(uint64_t index, const TensorList& out, const TensorList& in, absl::Time deadline) {
    const int n = size();
    Outgoing outgoing = {(rank() + 1) % n, {}};
    if (!out.empty()) {
      absl::StatusOr<absl::Span<const char>> bytes = staging_->AwaitOutgoing(index, deadline);
      if (!bytes.ok()) return bytes.status();
      outgoing.bytes = *bytes;
    }
    absl::StatusOr<absl::Span<char>> room = staging_->IncomingRoom(index, in.bytes(), deadline);
    if (!room.ok()) return room.status();
    return transport_->Exchange(outgoing, {(rank() + n - 1) % n, *room}, deadline);
  }

  uint64_t ChunkValues(const TensorList& values) const { return options_.chunk_bytes / SizeOf(values.type()); }

  StagedGroupOptions options_;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Transport> transport_;
  StreamOrder order_;
  std::optional<DeviceAccumulator> accumulator_{std::in_place};  // Empty only while the group is destroyed.
  std::vector<DeviceMemory> memory_;
  PointerKinds kinds_;
  RecentCalls calls_;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGroup>> MakeStagedGroup(std::unique_ptr<Transport> transport,
                                                             const StagedGroupOptions& options) {
  auto group = std::make_unique<StagedGroup>(std::move(transport), options);
  absl::Status status = group->Start();
  if (!status.ok()) return status;
  return group;
}

}  // namespace hooke
