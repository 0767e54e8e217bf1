#ifndef HOOKE_MPI_GROUP_GROUP_H_
#define HOOKE_MPI_GROUP_GROUP_H_

// What a rank sees of its group: N ranks that act as one. Made once per process (MakeMpiGroup in groups/mpi_group.h,
// MakeInProcessGroups in groups/in_process_group.h for tests); used by worker/rank.
//
// Every call is collective: all ranks call the same operations in the same order with the same sizes. Calls of one
// Group come from one thread at a time. After OK all ranks hold bitwise the same values.
//
// Sums and means of 16-bit values are added in float32, in an order that the topology and the size give, and rounded
// once; one rank rounds and the others copy, or all round the same sum. Groups in devices' memory say how they differ.
//
// A rank contributes one list of values to a call. A caller with several vectors in one process, each of them as long,
// has them reduced by AllReduceReplicas (collectives/replicas.h).
//
// Values may lie anywhere, but alike on all ranks: in one arena (AllocateShared) at the same places of it, or all of
// them in other memory, wherever that is. A call whose values lie in an arena on some ranks only, or in another arena
// or at other places of it, is INVALID_ARGUMENT on all ranks where the ranks of a node share memory, and fails the
// group.
//
// After an error the group is unusable and its rank exits; a DEADLINE_EXCEEDED names the rank that was waited for.
// Peers may still read the memory passed to the failed call and write to it: it stays until the rank exits. An error on
// one rank does not mean one on all: a rank that came after the others had given up may find all it needs in memory
// that ranks share, or waiting at its sockets, and return OK; a call soon after it fails.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpi_group/data_type.h"
#include "mpi_group/tensor_list.h"
#include "mpi_group/tuning.h"

namespace spdlog {
class logger;
}  // namespace spdlog

namespace hooke {

struct GroupOptions {
  // How long a collective may take, from its call on this rank. A rank that enters later than this is reported as
  // missing by the others.
  absl::Duration deadline = absl::Seconds(30);
  std::shared_ptr<spdlog::logger> logger;  // Null for silence.
  // By which algorithms are chosen; rank 0's counts on all ranks.
  Tuning tuning;
  // Ranks with the same one share a node. Empty: NodeIdentity() of transport/topology.h; tests make several nodes of
  // one.
  std::string node;
};

class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Every rank ends with the reduction of all ranks' values, in place.
  virtual absl::Status AllReduce(const TensorList& values, ReduceOp op) = 0;

  // Rank `root` ends with the reduction of all ranks' values; the values of the others are unspecified.
  virtual absl::Status Reduce(const TensorList& values, ReduceOp op, int root) = 0;

  // Every rank ends with `root`'s values.
  virtual absl::Status Broadcast(const TensorList& values, int root) = 0;

  // Slice r of `values` is parts[r], a range of values. The parts are the same on all ranks, ascending, do not overlap;
  // parts.size() == size().
  // On return rank r's own slice is the reduction of all ranks' values there; all other values are unspecified.
  virtual absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) = 0;
  // On entry rank r's own slice is right, on return all are.
  virtual absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) = 0;

  // Returns after all ranks have called it.
  virtual absl::Status Barrier() = 0;

  // Zeroed memory of this rank, 64-byte aligned, owned by the group and valid until it is destroyed; none for 0 bytes.
  // The ranks of a node share it: reductions and all-gathers of lists that lie in one such arena, at the same places of
  // it on every rank, work in place on the peers' memory, without copies. Where memory cannot be shared it is ordinary
  // memory. Between two calls a rank touches only its own arena. All ranks pass the same size. RESOURCE_EXHAUSTED:
  // there is not so much memory of either kind; that fails the group too.
  virtual absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) = 0;

  // By what the last collective was done, in the words of the tuning file and of static lifetime; empty: not known. For
  // the thread that calls them.
  virtual absl::string_view LastAlgorithm() const { return ""; }

  // Another group of the same ranks, for calls from another thread at the same time. Collective. Memory that this group
  // has allocated so far counts as shared in it too. This group outlives it. FAILED_PRECONDITION where that cannot be.
  virtual absl::StatusOr<std::unique_ptr<Group>> Clone() {
    return absl::FailedPreconditionError("groups of this kind serve one thread only");
  }
};

// The same, as values.
template <typename T>
absl::StatusOr<absl::Span<T>> AllocateSharedValues(Group& group, uint64_t values) {
  const absl::StatusOr<absl::Span<char>> bytes = group.AllocateShared(
      values > std::numeric_limits<uint64_t>::max() / sizeof(T) ? std::numeric_limits<uint64_t>::max()
                                                                : values * sizeof(T));
  if (!bytes.ok()) return bytes.status();
  return absl::Span<T>(reinterpret_cast<T*>(bytes->data()), values);
}

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_GROUP_H_
