#ifndef HOOKE_MPI_GROUP_PROFILE_PROFILE_HISTOGRAM_H_
#define HOOKE_MPI_GROUP_PROFILE_PROFILE_HISTOGRAM_H_

// A histogram of call durations with a fixed number of buckets: one per nanosecond below 32, then 16 per power of two,
// up to 2^40 ns (18 minutes). The last bucket also holds everything longer. From 16 ns on, each bucket but the last is
// at most 1/16 of its begin wide, and its middle is at most 1/32 off any value in it.
//
// One thread adds. Others may read at the same time; each call is either counted for them or not yet.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hooke {

class ProfileHistogram {
 public:
  static constexpr size_t kBuckets = 32 + 35 * 16;

  // The bucket of a duration; a negative one counts as 0.
  static size_t BucketOf(int64_t ns) {
    if (ns < 32) return ns < 0 ? 0 : static_cast<size_t>(ns);
    const int power = 63 - __builtin_clzll(static_cast<uint64_t>(ns));
    if (power > 39) return kBuckets - 1;
    return 32 + static_cast<size_t>(power - 5) * 16 + static_cast<size_t>((ns >> (power - 4)) & 15);
  }
  static uint64_t Begin(size_t bucket) {
    if (bucket < 32) return bucket;
    return uint64_t{16 + (bucket - 32) % 16} << ((bucket - 32) / 16 + 1);
  }
  static uint64_t End(size_t bucket) {
    return bucket + 1 < kBuckets ? Begin(bucket + 1) : std::numeric_limits<uint64_t>::max();
  }

  void Add(int64_t ns) {
    std::atomic<uint64_t>& calls = calls_[BucketOf(ns)];
    calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint64_t calls(size_t bucket) const { return calls_[bucket].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kBuckets> calls_{};
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_PROFILE_PROFILE_HISTOGRAM_H_
