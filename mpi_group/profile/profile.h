#ifndef HOOKE_MPI_GROUP_PROFILE_PROFILE_H_
#define HOOKE_MPI_GROUP_PROFILE_PROFILE_H_

// Records the cost of a rank's collectives: calls, bytes and times by operation, by size, and by fused or not. It also
// keeps a trace of the last calls, with the phases of the training steps around them. Its memory is bounded, and a call
// costs some tens of nanoseconds. There is one ProfileRecorder per rank; profiled_group.h and worker/report's reporter
// fill it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "mpi_group/operation.h"
#include "mpi_group/profile/profile_histogram.h"
#include "mpi_group/profile/trace_ring.h"

namespace hooke {

// The kind of a call. Calls of one kind are counted together.
struct CollectiveKind {
  Operation operation = Operation::kAllReduce;
  bool fused = false;  // Several vectors in one call.
  // The range of a call's bytes: one size, or a bin of SizeBinOf.
  uint64_t bytes_min = 0;
  uint64_t bytes_max = 0;
};

struct SizeBin {
  uint64_t bytes_min = 0;
  uint64_t bytes_max = 0;
};
// The bin [2^k, 2^(k+1) - 1] that contains `bytes`; [0, 0] for 0.
SizeBin SizeBinOf(uint64_t bytes);

struct CollectiveCall {
  Operation operation = Operation::kAllReduce;
  bool fused = false;
  uint64_t bytes = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  absl::string_view algorithm = {};  // Has static lifetime; empty if unknown.
};

// Statistics of all calls of one kind so far.
struct CollectiveStatistics {
  CollectiveKind kind;
  std::string algorithm;  // Algorithm of the first call, if the kind is one size; empty if unknown.
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t step_ns = 0;  // Part of time_ns: calls that ended in a training step.
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  struct Bucket {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    uint64_t calls = 0;
  };
  std::vector<Bucket> buckets;  // Buckets that have calls, in ascending order.
};

// An event of the trace.
struct ProfileEvent {
  uint32_t track = 0;  // 0: the rank's phases. i + 1: the calls of ProfileLane i.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t phase = 0;  // The phase. Only events of track 0 set `phase` and `step`.
  uint64_t step = 0;
  Operation operation = Operation::kAllReduce;  // Only events of lanes set `operation`, `fused` and `bytes`.
  bool fused = false;
  uint64_t bytes = 0;
  uint64_t call = 0;  // The number of the call on its lane, from 1. Set only for calls on lanes.
};

struct Profile {
  uint64_t step_ns = 0;  // Time spent in training steps.
  std::vector<CollectiveStatistics> collectives;
  std::vector<ProfileEvent> events;  // Sorted by begin; events of a track do not overlap.
  uint64_t calls_left_out = 0;       // Calls of groups beyond lanes_max, which have no lane.
};

struct ProfileOptions {
  // Monotonic nanoseconds, the same for all processes of a machine. Any thread may call it.
  std::function<int64_t()> clock;
  // Kinds of calls of one size that a lane counts separately. Calls of further kinds are counted in the bins of their
  // sizes.
  size_t exact_sizes_max = 64;
  size_t events_max = 1024;  // Events kept in the trace, over all tracks.
  size_t lanes_max = 16;
};

// Records the calls of one Group. One thread at a time may record.
class ProfileLane {
 public:
  ProfileLane(const ProfileOptions& options, const std::atomic<bool>& in_step);
  ~ProfileLane();

  void Record(const CollectiveCall& call);

  // Any thread may call AppendTo() and Trace().
  void AppendTo(std::vector<CollectiveStatistics>& statistics) const;
  std::vector<TraceSlice> Trace() const { return ring_.Read(); }

 private:
  struct Entry;
  static constexpr size_t kBins = 65;
  static constexpr size_t kOperations = std::size(kAllOperations);
  static constexpr size_t kEntriesMax = 2 * kOperations * kBins;  // Entries for bins, besides those for exact sizes.

  Entry& EntryOf(const CollectiveCall& call);
  Entry& Publish(const CollectiveKind& kind, absl::string_view algorithm);

  const ProfileOptions& options_;
  const std::atomic<bool>& in_step_;
  // Only the recording thread uses these three: entries by the hash of an exact size, and entries by bin.
  std::vector<Entry*> exact_;
  std::array<Entry*, kEntriesMax> bins_{};
  size_t exact_sizes_ = 0;
  // Readers see entries_[0, entries_count_). These pointers never change again, but the counters that they point to do.
  std::vector<std::unique_ptr<Entry>> entries_;
  std::atomic<size_t> entries_count_{0};
  TraceRing ring_;
};

// Records the costs of one rank's collectives and phases. Thread-safe.
class ProfileRecorder {
 public:
  explicit ProfileRecorder(ProfileOptions options);

  int64_t Now() const { return options_.clock(); }

  // Adds a lane for one Group. The lane is valid as long as the recorder. Null if there are lanes_max lanes already.
  ProfileLane* AddLane();
  // Counts a call of a group that has no lane.
  void LeaveOut() { calls_left_out_.fetch_add(1, std::memory_order_relaxed); }

  struct Phase {
    uint32_t phase = 0;    // The caller's number for the phase; 0 is no phase.
    bool in_step = false;  // If true, the phase's time and that of collectives that end in it count as time in steps.
    uint64_t step = 0;     // Number of steps done.
  };
  // Notes that the rank is in this phase from now on.
  void Enter(const Phase& phase);

  Profile Snapshot() const;

 private:
  ProfileOptions options_;
  std::atomic<bool> in_step_{false};
  std::atomic<uint64_t> calls_left_out_{0};
  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_);
  int64_t phase_since_ns_ ABSL_GUARDED_BY(mutex_);
  uint64_t step_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  TraceRing phases_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<ProfileLane>> lanes_ ABSL_GUARDED_BY(mutex_);
};

// CLOCK_MONOTONIC in nanoseconds.
int64_t MonotonicNanoseconds();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_PROFILE_PROFILE_H_
