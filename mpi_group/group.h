#ifndef HOOKE_MPI_GROUP_GROUP_H_
#define HOOKE_MPI_GROUP_GROUP_H_

// What a rank sees of its group: N ranks that act as one. Made once per process (MakeMpiGroup in mpi_group.h,
// MakeInProcessGroups in in_process_transport.h for tests); used by worker/rank.
//
// Every call is collective: all ranks call the same operations in the same order with the same sizes. Calls of one
// Group come from one thread at a time. After OK all ranks hold bitwise the same values. After an error the group is
// unusable and its rank exits; a DEADLINE_EXCEEDED names the rank that was waited for.

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/tensor_list.h"

namespace spdlog {
class logger;
}  // namespace spdlog

namespace hooke {

enum class ReduceOp { kSum, kMean, kMin, kMax };

struct GroupOptions {
  // How long a collective may take, from its call on this rank. A rank that enters later than this is reported as
  // missing by the others.
  absl::Duration deadline = absl::Seconds(30);
  std::shared_ptr<spdlog::logger> logger;  // Null for silence.
};

class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Every rank ends with the reduction of all ranks' values, in place.
  virtual absl::Status AllReduce(const TensorList& values, ReduceOp op) = 0;
  // Every rank ends with `root`'s values.
  virtual absl::Status Broadcast(const TensorList& values, int root) = 0;
  // Slice r of `values` is parts[r], a range of values; on entry rank r's own slice is right, on return all are. The
  // parts are the same on all ranks, ascending, do not overlap; parts.size() == size().
  virtual absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) = 0;
  // Returns after all ranks have called it.
  virtual absl::Status Barrier() = 0;

  // Zeroed memory for `values` floats of this rank, owned by the group and valid until it is destroyed. Where all ranks
  // can share memory (one node), AllReduce and AllGather of lists that lie in one such arena, at the same places of it
  // on every rank, work in place on the peers' memory: no messages, no copies. Elsewhere it is ordinary memory. Between
  // two calls a rank touches only its own arena.
  virtual absl::StatusOr<absl::Span<float>> AllocateShared(uint64_t values) = 0;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUP_H_
