#ifndef HOOKE_MPI_GROUP_PROFILE_PROFILE_H_
#define HOOKE_MPI_GROUP_PROFILE_PROFILE_H_

// What the collectives of a rank cost: for each operation, each size, and fused or not, how many calls of how many
// bytes took how long; and a trace of the last of them, with the phases of the steps around them. In memory of a
// bounded size, in some tens of nanoseconds a call. One ProfileRecorder per rank; filled by profiled_group.h and
// worker/rank's reporter, which also passes the snapshots on.

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

// What is counted together.
struct CollectiveKind {
  Operation operation = Operation::kAllReduce;
  bool fused = false;  // Several vectors in one call.
  // Bytes of a call: the same for all, or any in a bin of SizeBinOf.
  uint64_t bytes_min = 0;
  uint64_t bytes_max = 0;
};

struct SizeBin {
  uint64_t bytes_min = 0;
  uint64_t bytes_max = 0;
};
// [2^k, 2^(k+1) - 1] around `bytes`; [0, 0] for 0.
SizeBin SizeBinOf(uint64_t bytes);

struct CollectiveCall {
  Operation operation = Operation::kAllReduce;
  bool fused = false;
  uint64_t bytes = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  absl::string_view algorithm = {};  // By which it was done, of static lifetime; empty: not known.
};

// A kind's calls so far.
struct CollectiveStatistics {
  CollectiveKind kind;
  std::string algorithm;  // Of the first of them, for an exact size; empty: not known.
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t step_ns = 0;  // Of calls that ended in a step.
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  struct Bucket {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    uint64_t calls = 0;
  };
  std::vector<Bucket> buckets;  // Those with calls, ascending.
};

// An event of the trace.
struct ProfileEvent {
  uint32_t track = 0;  // 0: the rank's phases; from 1: the lanes.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint32_t phase = 0;  // Track 0, and the next.
  uint64_t step = 0;
  Operation operation = Operation::kAllReduce;  // Lanes, and the next two.
  bool fused = false;
  uint64_t bytes = 0;
};

struct Profile {
  uint64_t step_ns = 0;  // Time in steps.
  std::vector<CollectiveStatistics> collectives;
  std::vector<ProfileEvent> events;  // By begin; those of a track do not overlap.
  uint64_t calls_left_out = 0;       // Of lanes beyond the bound.
};

struct ProfileOptions {
  std::function<int64_t()> clock;  // Monotonic nanoseconds, the same for all processes of a machine. Any thread.
  size_t exact_sizes_max = 64;     // Of each lane; calls of further sizes are counted in their bins.
  size_t events_max = 1024;        // Of the trace, of all tracks together.
  size_t lanes_max = 16;
};

// Records the calls of one Group: at any time of one thread.
class ProfileLane {
 public:
  ProfileLane(const ProfileOptions& options, const std::atomic<bool>& in_step);
  ~ProfileLane();

  void Record(const CollectiveCall& call);

  // Any thread.
  void AppendTo(std::vector<CollectiveStatistics>& statistics) const;
  std::vector<TraceSlice> Trace() const { return ring_.Read(); }

 private:
  struct Entry;
  static constexpr size_t kBins = 65;
  static constexpr size_t kOperations = std::size(kAllOperations);
  static constexpr size_t kEntriesMax = 2 * kOperations * kBins;  // Besides those of exact sizes.

  Entry& EntryOf(const CollectiveCall& call);
  Entry& Publish(const CollectiveKind& kind, absl::string_view algorithm);

  const ProfileOptions& options_;
  const std::atomic<bool>& in_step_;
  // Of the recording thread alone: where to find an entry again, by hash and by bin.
  std::vector<Entry*> exact_;
  std::array<Entry*, kEntriesMax> bins_{};
  size_t exact_sizes_ = 0;
  // Published to readers: entries_[0, entries_count_) do not change any more, what they count does.
  std::vector<std::unique_ptr<Entry>> entries_;
  std::atomic<size_t> entries_count_{0};
  TraceRing ring_;
};

// Thread-safe.
class ProfileRecorder {
 public:
  explicit ProfileRecorder(ProfileOptions options);

  int64_t Now() const { return options_.clock(); }

  // For one Group, valid as long as the recorder. Null beyond lanes_max.
  ProfileLane* AddLane();
  void LeaveOut() { calls_left_out_.fetch_add(1, std::memory_order_relaxed); }

  struct Phase {
    uint32_t phase = 0;    // The caller's number for it.
    bool in_step = false;  // Its time, and that of collectives that end in it, is time in steps.
    uint64_t step = 0;     // Steps done.
  };
  // The rank is in this phase from now on.
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

// The steady clock of this machine: CLOCK_MONOTONIC, in nanoseconds.
int64_t MonotonicNanoseconds();

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_PROFILE_PROFILE_H_
