#include "mpi_group/transport_group.h"

#include <spdlog/logger.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/all_gather.h"
#include "mpi_group/barrier.h"
#include "mpi_group/broadcast.h"
#include "mpi_group/call.h"
#include "mpi_group/choose_algorithm.h"
#include "mpi_group/reference.h"
#include "mpi_group/ring.h"
#include "mpi_group/shared_arena.h"
#include "mpi_group/shared_memory.h"

namespace hooke {
namespace {

// Memory that all ranks reach, and the arena in it.
struct NodeArena {
  NodeArena(std::unique_ptr<SharedMemory> mapped, const SharedArena::Layout& layout)
      : memory(std::move(mapped)), arena(layout) {}

  const std::unique_ptr<SharedMemory> memory;
  SharedArena arena;
};

class TransportGroup : public Group {
 public:
  TransportGroup(std::unique_ptr<Transport> transport, const GroupOptions& options)
      : options_(options), transport_(std::move(transport)) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }

  absl::Status AllReduce(const TensorList& values, ReduceOp op) override {
    return Run(Operation::kAllReduce, values, [&](Algorithm algorithm, SharedArena* arena, const Call& call) {
      switch (algorithm) {
        case Algorithm::kSharedMemory:
          return SharedMemoryAllReduce(*arena, values, op, call.deadline);
        case Algorithm::kReference:
          return ReferenceAllReduce(*transport_, values, op, call);
        default:
          return RingAllReduce(*transport_, values, op, call);
      }
    });
  }

  absl::Status Broadcast(const TensorList& values, int root) override {
    if (root < 0 || root >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("broadcast from rank ", root, ": the group has ", size(), " ranks"));
    }
    return Run(Operation::kBroadcast, values, [&](Algorithm, SharedArena*, const Call& call) {
      return BinomialBroadcast(*transport_, values, root, call);
    });
  }

  absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) override {
    absl::Status status = CheckParts(parts, size(), values.size());
    if (!status.ok()) return status;
    return Run(Operation::kAllGather, values, [&](Algorithm algorithm, SharedArena* arena, const Call& call) {
      if (algorithm == Algorithm::kSharedMemory) return SharedMemoryAllGather(*arena, values, parts, call.deadline);
      return RingAllGather(*transport_, values, parts, call);
    });
  }

  absl::Status Barrier() override {
    return Run(Operation::kBarrier, TensorList(), [&](Algorithm, SharedArena*, const Call& call) {
      return DisseminationBarrier(*transport_, call.deadline);
    });
  }

  absl::StatusOr<absl::Span<float>> AllocateShared(uint64_t values) override {
    if (!failure_.ok()) return failure_;
    if (size() > 1) {
      const uint64_t bytes = SharedArena::RegionBytes(values);
      auto memory = SharedMemory::Create(*transport_, bytes, absl::Now() + options_.deadline);
      if (memory.ok()) {
        const SharedArena::Layout layout = {rank(), size(), (*memory)->base(), (*memory)->bytes_per_rank(), values};
        shared_.push_back(std::make_unique<NodeArena>(*std::move(memory), layout));
        return shared_.back()->arena.ValuesOf(rank());
      }
      const absl::Status& why = memory.status();
      if (!absl::IsFailedPrecondition(why) && !absl::IsResourceExhausted(why)) {
        return Fail(why, absl::StrCat("allocation of ", values, " shared values"));
      }
      if (options_.logger != nullptr) {
        options_.logger->warn("shared memory for {} values is not available, each rank uses memory of its own: {}",
                              values, std::string(why.message()));
      }
    }
    private_.push_back(std::vector<float>(values));
    return absl::MakeSpan(private_.back());
  }

 private:
  using Collective = std::function<absl::Status(Algorithm, SharedArena*, const Call&)>;

  absl::Status Run(Operation operation, const TensorList& values, const Collective& collective) {
    if (!failure_.ok()) return failure_;
    SharedArena* const arena = ArenaOf(values);
    const Choice choice = ChooseAlgorithm({size()}, {operation, values.size() * sizeof(float), arena != nullptr});
    if (choice.algorithm == Algorithm::kNothing) return absl::OkStatus();
    absl::Status status = collective(choice.algorithm, arena, {absl::Now() + options_.deadline, scratch_});
    if (status.ok()) return status;
    return Fail(status, absl::StrCat(NameOf(operation), " of ", values.size(), " values"));
  }

  SharedArena* ArenaOf(const TensorList& values) {
    for (const std::unique_ptr<NodeArena>& shared : shared_) {
      if (shared->arena.Contains(values)) return &shared->arena;
    }
    return nullptr;
  }

  // From now on every call returns this error.
  absl::Status Fail(const absl::Status& status, absl::string_view what) {
    failure_ =
        absl::Status(status.code(), absl::StrCat(what, " on rank ", rank(), " of ", size(), " (deadline ",
                                                 absl::FormatDuration(options_.deadline), "): ", status.message()));
    return failure_;
  }

  const GroupOptions options_;
  const std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<NodeArena>> shared_;
  std::vector<std::vector<float>> private_;
  Scratch scratch_;
  absl::Status failure_;
};

}  // namespace

std::unique_ptr<Group> MakeTransportGroup(std::unique_ptr<Transport> transport, const GroupOptions& options) {
  return std::make_unique<TransportGroup>(std::move(transport), options);
}

}  // namespace hooke
