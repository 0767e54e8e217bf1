#ifndef HOOKE_MPI_GROUP_GROUP_H_
#define HOOKE_MPI_GROUP_GROUP_H_

// A group: N ranks that act as one, as each rank sees it. A process makes its group once: MakeMpiGroup
// (groups/mpi_group.h), or without MPI MakeInProcessGroups (groups/in_process_group.h), which tests use too.
//
// Every call is collective: all ranks call the same operations in the same order with the same sizes. Calls of one
// Group come from one thread at a time. After an OK all-reduce, broadcast or all-gather all ranks hold bitwise the same
// values.
//
// Sums and means of 16-bit values are added in float32 and rounded once. The order of addition follows from the
// topology and the size. Either one rank rounds and the others copy its result, or all round the same sum. For groups
// of values in GPU memory, the headers in cuda/ say what differs.
//
// A rank contributes one list of values to a call.
//
// The values of a call lie in one of two places, the same on all ranks. Either they all lie in one arena
// (AllocateShared), at the same offsets on every rank. Or they all lie in other memory, at any address. If ranks differ
// in that, and the ranks of a node share memory, the call returns INVALID_ARGUMENT on all ranks and the group fails.
//
// After an error the group is unusable and its rank must exit; a DEADLINE_EXCEEDED names the rank that was waited for.
// Peers may still read and write the memory that was passed to the failed call, so it has to stay until the rank exits.
// An error on one rank does not mean an error on all. A rank that comes after the others gave up may still find
// everything it needs in shared memory or in its sockets. It then returns OK, and one of its next calls fails.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

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

// The network between two nodes, as a rank of each has measured it.
struct LinkFigures {
  int peer = -1;                // The rank on the other node.
  absl::Duration round_trip;    // The shortest of several round trips of a small message.
  double bytes_per_second = 0;  // From this rank to the peer; 0: not known.
};

struct GroupOptions {
  // How long a collective may take, counted from this rank's call, until Group::SetDeadline changes it. If a rank
  // enters a call later than this, the other ranks report it as missing.
  absl::Duration deadline = absl::Seconds(30);
  std::shared_ptr<spdlog::logger> logger;  // Null: the group logs nothing.
  // Rules by which algorithms are chosen. Every rank uses rank 0's rules.
  Tuning tuning;
  // Ranks with equal names count as ranks of one node. Empty: NodeIdentity() of transport/topology.h. Tests set this to
  // treat one machine as several nodes.
  std::string node;
  // The addresses of this rank's node, as text, by which sockets reach other nodes. Empty: all that the node has. They
  // may differ between nodes.
  std::vector<std::string> addresses;
  // The folder in which the kernel lists RDMA devices. Tests set it.
  std::string rdma_devices = "/sys/class/infiniband";
  // Set on all ranks or on none. If it is set, the first call of a group on several nodes also measures the links
  // between them (links/measure_links.h), for about 0.1 s. Then it calls this function once on the first rank of each
  // node, with what that rank has measured. Clones of the group do not measure again.
  std::function<void(const std::vector<LinkFigures>&)> on_links;
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

  // parts[r] is the range of values that belongs to rank r, its slice. There are size() parts, the same on all ranks;
  // they ascend and do not overlap. On return rank r's own slice holds the reduction of all ranks' values; all other
  // values are unspecified.
  virtual absl::Status ReduceScatter(const TensorList& values, absl::Span<const ValueRange> parts, ReduceOp op) = 0;
  // On entry rank r has the values of its own slice; on return every rank has the values of all slices.
  virtual absl::Status AllGather(const TensorList& values, absl::Span<const ValueRange> parts) = 0;

  // Returns after all ranks have called it.
  virtual absl::Status Barrier() = 0;

  // Sets how long each later collective may take, also in groups cloned from now on. All ranks set the same deadline,
  // between the same two collectives. A program may allow more time for its first collectives than for later ones.
  virtual void SetDeadline(absl::Duration deadline) = 0;

  // Zeroed memory of this rank, 64-byte aligned, that the group owns and keeps until it is destroyed; an empty span for
  // 0 bytes. The ranks of a node share such memory: an arena. Collectives on values in one arena work in place on the
  // peers' memory, without copies, if the values lie at the same offsets on every rank. Where memory cannot be shared,
  // the span is ordinary memory. Between calls a rank may touch only its own span. All ranks pass the same size.
  // RESOURCE_EXHAUSTED: there is neither enough shared nor enough ordinary memory. The group is then unusable, as after
  // any error.
  virtual absl::StatusOr<absl::Span<char>> AllocateShared(uint64_t bytes) = 0;

  // The algorithm of the last collective, named as in the tuning file, with static lifetime; empty if unknown. Only the
  // thread that calls the collectives may ask.
  virtual absl::string_view LastAlgorithm() const { return ""; }

  // Makes another group of the same ranks, so that a second thread can call collectives at the same time. Collective.
  // The new group can also work in place in the arenas that this group has allocated so far. This group must outlive
  // the new one. FAILED_PRECONDITION if this kind of group cannot be cloned.
  virtual absl::StatusOr<std::unique_ptr<Group>> Clone() {
    return absl::FailedPreconditionError("groups of this kind serve one thread only");
  }
};

// AllocateShared() for `values` values of type T.
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
