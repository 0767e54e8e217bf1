#include "mpi_group/cuda/staged_group.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpi_group/all_gather.h"
#include "mpi_group/barrier.h"
#include "mpi_group/call.h"
#include "mpi_group/cuda/cuda_status.h"
#include "mpi_group/cuda/device_memory.h"
#include "mpi_group/cuda/staging.h"
#include "mpi_group/steady_clock.h"

namespace hooke {
namespace {

// A message out and one in, at the same time; either may be empty.
struct Pass {
  TensorList out;
  TensorList in;
  // Of the passes, the first whose result the outgoing values may hold: they can be read as soon as that is written.
  uint64_t needs = 0;  // 0: none; else the pass's index + 1.
};

class StagedGroup : public Group {
 public:
  StagedGroup(std::unique_ptr<Transport> transport, const StagedGroupOptions& options)
      : options_(options), transport_(std::move(transport)) {}

  ~StagedGroup() override { cudaSetDevice(options_.device); }

  absl::Status Start() {
    int devices = 0;
    absl::Status status = CudaStatus(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (!status.ok()) return absl::FailedPreconditionError(status.message());
    if (options_.device < 0 || options_.device >= devices) {
      return absl::FailedPreconditionError(absl::StrCat("device ", options_.device, ": this node has ", devices));
    }
    status = CudaStatus(cudaSetDevice(options_.device), "cudaSetDevice");
    if (!status.ok()) return status;
    absl::StatusOr<std::unique_ptr<Staging>> staging = Staging::Create(options_.chunk_bytes);
    if (!staging.ok()) return staging.status();
    staging_ = *std::move(staging);
    return absl::OkStatus();
  }

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    return AllReduceOfParts(values, EvenParts(values.size(), size()), op, "all-reduce");
  }

  absl::Status Reduce(const TensorList& values, ReduceOp op, int root) override {
    absl::Status status = CheckRoot(root);
    if (!status.ok()) return status;
    return AllReduceOfParts(values, EvenParts(values.size(), size()), op, "reduce");
  }

  absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) override {
    absl::Status status = CheckParts(parts, size(), values.size());
    if (!status.ok()) return status;
    return Call(values, "reduce-scatter", [&](absl::Time deadline) { return Scatter(values, parts, op, deadline); });
  }

  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    absl::Status status = CheckParts(parts, size(), values.size());
    if (!status.ok()) return status;
    return Call(values, "all-gather", [&](absl::Time deadline) { return Gather(values, parts, deadline); });
  }

  // A chain from the root, chunk by chunk.
  absl::Status Broadcast(const TensorList& values, int root) override {
    absl::Status status = CheckRoot(root);
    if (!status.ok()) return status;
    return Call(values, "broadcast", [&](absl::Time deadline) {
      const int place = (rank() - root + size()) % size();
      const uint64_t chunk = ChunkValues(values);
      const ValueRange all = {0, values.size()};
      for (uint64_t i = 0; i < ChunkCount(all, chunk); ++i) {
        const TensorList part = values.Slice(Chunk(all, i, chunk));
        absl::Status result;
        if (place > 0) result = Exchange({{}, part, 0}, i, ReduceOp::kSum, /*reduces=*/false, deadline);
        if (place + 1 < size()) {
          result.Update(staging_->StartOutgoing(i, part));
          if (result.ok()) result = Exchange({part, {}, 0}, i, ReduceOp::kSum, /*reduces=*/false, deadline);
        }
        if (!result.ok()) return result;
      }
      return absl::OkStatus();
    });
  }

  absl::Status Barrier() override {
    return Call(TensorList(), "barrier",
                [&](absl::Time deadline) { return DisseminationBarrier(*transport_, deadline); });
  }

  absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) override {
    if (!failure_.ok()) return failure_;
    cudaSetDevice(options_.device);
    absl::StatusOr<DeviceMemory> memory = AllocateDeviceMemory(bytes);
    if (!memory.ok()) return memory.status();
    memory_.push_back(*std::move(memory));
    return absl::MakeSpan(memory_.back().get(), bytes);
  }

 private:
  template <typename Collective>
  absl::Status Call(const TensorList& values, absl::string_view name, const Collective& collective) {
    if (!failure_.ok()) return failure_;
    absl::Status status = CudaStatus(cudaSetDevice(options_.device), "cudaSetDevice");
    status.Update(kinds_.CheckOnDevice(values, options_.device));
    if (!status.ok()) return status;
    const absl::Time deadline = SteadyNow() + options_.deadline;
    status = collective(deadline);
    status.Update(staging_->AwaitAll(deadline));
    if (status.ok()) return status;
    failure_ =
        absl::Status(status.code(), absl::StrCat(name, " of ", values.size(), " ", NameOf(values.type()), " on device ",
                                                 options_.device, " of rank ", rank(), " of ", size(), " (deadline ",
                                                 absl::FormatDuration(options_.deadline), "): ", status.message()));
    return failure_;
  }

  absl::Status AllReduceOfParts(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op,
                                absl::string_view name) {
    return Call(values, name, [&](absl::Time deadline) {
      absl::Status status = Scatter(values, parts, op, deadline);
      return status.ok() ? Gather(values, parts, deadline) : status;
    });
  }

  // As RingReduceScatter.
  absl::Status Scatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op, absl::Time deadline) {
    absl::Status status = RunAll(Ring(values, parts, /*shift=*/1), op, /*reduces=*/true, deadline);
    if (!status.ok() || op != ReduceOp::kMean) return status;
    return staging_->StartDividing(values.Slice(parts[rank()]), size());
  }

  // As RingAllGather.
  absl::Status Gather(const TensorList& values, absl::Span<const ValueRange> parts, absl::Time deadline) {
    return RunAll(Ring(values, parts, /*shift=*/0), ReduceOp::kSum, /*reduces=*/false, deadline);
  }

  // Part (rank - shift - step) goes out while the one before it comes in, chunk by chunk.
  std::vector<Pass> Ring(const TensorList& values, absl::Span<const ValueRange> parts, int shift) const {
    const int n = size();
    const uint64_t chunk = ChunkValues(values);
    std::vector<Pass> passes;
    uint64_t previous_step = 0;  // Its first pass.
    for (int step = 0; step < n - 1; ++step) {
      const ValueRange out = parts[(rank() + 2 * n - step - shift) % n];
      const ValueRange in = parts[(rank() + 2 * n - step - shift - 1) % n];
      const uint64_t first = passes.size();
      const uint64_t chunks = std::max(ChunkCount(out, chunk), ChunkCount(in, chunk));
      for (uint64_t i = 0; i < chunks; ++i) {
        // What goes out came in as the same chunk of the previous step.
        const uint64_t needs = step == 0 ? 0 : std::min(previous_step + i, first - 1) + 1;
        passes.push_back({values.Slice(Chunk(out, i, chunk)), values.Slice(Chunk(in, i, chunk)), needs});
      }
      if (chunks > 0) previous_step = first;
    }
    return passes;
  }

  // The outgoing values of the next pass leave the device while this one's messages travel, unless they depend on them.
  absl::Status RunAll(const std::vector<Pass>& passes, ReduceOp op, bool reduces, absl::Time deadline) {
    uint64_t started = 0;
    for (uint64_t i = 0; i < passes.size(); ++i) {
      while (started < passes.size() && started < i + Staging::kSlots && passes[started].needs <= i) {
        absl::Status status = staging_->StartOutgoing(started, passes[started].out);
        if (!status.ok()) return status;
        ++started;
      }
      absl::Status status = Exchange(passes[i], i, op, reduces, deadline);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Exchange(const Pass& pass, uint64_t index, ReduceOp op, bool reduces, absl::Time deadline) {
    const int n = size();
    Outgoing outgoing = {(rank() + 1) % n, {}};
    if (!pass.out.empty()) {
      absl::StatusOr<absl::Span<const char>> bytes = staging_->AwaitOutgoing(index, deadline);
      if (!bytes.ok()) return bytes.status();
      outgoing.bytes = *bytes;
    }
    absl::StatusOr<absl::Span<char>> room = staging_->IncomingRoom(index, pass.in.bytes(), deadline);
    if (!room.ok()) return room.status();
    absl::Status status = transport_->Exchange(outgoing, {(rank() + n - 1) % n, *room}, deadline);
    if (!status.ok() || pass.in.empty()) return status;
    return reduces ? staging_->StartReducing(index, pass.in, op) : staging_->StartWriting(index, pass.in);
  }

  uint64_t ChunkValues(const TensorList& values) const { return options_.chunk_bytes / SizeOf(values.type()); }

  absl::Status CheckRoot(int root) const {
    if (root >= 0 && root < size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("root ", root, ": the group has ", size(), " ranks"));
  }

  const StagedGroupOptions options_;
  const std::unique_ptr<Transport> transport_;
  std::unique_ptr<Staging> staging_;
  std::vector<DeviceMemory> memory_;
  PointerKinds kinds_;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Group>> MakeStagedGroup(std::unique_ptr<Transport> transport,
                                                       const StagedGroupOptions& options) {
  auto group = std::make_unique<StagedGroup>(std::move(transport), options);
  absl::Status status = group->Start();
  if (!status.ok()) return status;
  return group;
}

}  // namespace hooke
