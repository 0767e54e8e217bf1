#ifndef HOOKE_MPI_GROUP_NODE_NODE_RANKS_H_
#define HOOKE_MPI_GROUP_NODE_NODE_RANKS_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "mpi_group/node/node_collectives.h"
#include "mpi_group/node/node_meeting.h"
#include "mpi_group/node/shared_arena.h"

namespace hooke {

// For tests: the ranks of a node as threads, over ordinary memory that they share, so that the thread sanitizer sees
// every access.
class NodeRanks {
 public:
  static constexpr uint64_t kChunkBytes = 4096;

  explicit NodeRanks(int n, const std::vector<int>& numbers = {}, const std::function<absl::Status()>& interrupted = {},
                     uint64_t arena_bytes = 0, const std::function<bool(int)>& has_ended = {}) {
    const StagingSizes staging = StagingFor(kChunkBytes, n);
    const uint64_t region = NodeMeeting::RegionBytes(staging.slot_bytes, staging.extra_bytes);
    const uint64_t arena_region = (arena_bytes + 63) / 64 * 64;
    slots_.resize(region * n / sizeof(Line));
    values_.resize(arena_region * n / sizeof(Line));
    for (int rank = 0; rank < n; ++rank) {
      meetings_.push_back(
          std::make_unique<NodeMeeting>(NodeMeeting::Options{rank, n, slots_.data()->bytes, region, staging.slot_bytes,
                                                             staging.extra_bytes, numbers, interrupted, has_ended}));
      arenas_.push_back(std::make_unique<SharedArena>(SharedArena::Layout{
          rank, n, arena_region == 0 ? nullptr : values_.data()->bytes, arena_region, arena_bytes, 0}));
    }
  }

  NodeMeeting& meeting(int rank) { return *meetings_[rank]; }
  SharedArena& arena(int rank) { return *arenas_[rank]; }
  void Destroy(int rank) { meetings_[rank].reset(); }

 private:
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> slots_;
  std::vector<Line> values_;
  std::vector<std::unique_ptr<NodeMeeting>> meetings_;
  std::vector<std::unique_ptr<SharedArena>> arenas_;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_NODE_RANKS_H_
