#ifndef HOOKE_MPI_GROUP_PROFILE_TRACE_RING_H_
#define HOOKE_MPI_GROUP_PROFILE_TRACE_RING_H_

// A ring buffer of the last events of one thread.
//
// One thread adds and never waits. Others may read at the same time, and miss events that are being overwritten.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hooke {

// An event from `begin_ns` to `end_ns` on the rank's clock. The adder decides what `value` and `kind` mean.
struct TraceSlice {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t value = 0;
  uint32_t kind = 0;
  uint64_t number = 0;  // Set by Read: counts all events that were added, from 1.
};

class TraceRing {
 public:
  // Keeps the last `slices_max` events.
  explicit TraceRing(size_t slices_max)
      : slots_count_(slices_max + 1), slots_(std::make_unique<Slot[]>(slots_count_)) {}

  void Add(const TraceSlice& slice) {
    const uint64_t index = added_.load(std::memory_order_relaxed);
    Slot& slot = slots_[index % slots_count_];
    // Release order: a reader that sees a field of this slice also sees that the overwritten slice is no longer valid.
    slot.begin_ns.store(slice.begin_ns, std::memory_order_release);
    slot.end_ns.store(slice.end_ns, std::memory_order_release);
    slot.value.store(slice.value, std::memory_order_release);
    slot.kind.store(slice.kind, std::memory_order_release);
    added_.store(index + 1, std::memory_order_release);
  }

  // Returns the events in the order in which they were added.
  std::vector<TraceSlice> Read() const {
    const uint64_t end = added_.load(std::memory_order_acquire);
    const uint64_t begin = end >= slots_count_ ? end - slots_count_ + 1 : 0;
    std::vector<TraceSlice> slices;
    slices.reserve(end - begin);
    for (uint64_t i = begin; i < end; ++i) {
      const Slot& slot = slots_[i % slots_count_];
      slices.push_back({slot.begin_ns.load(std::memory_order_acquire), slot.end_ns.load(std::memory_order_acquire),
                        slot.value.load(std::memory_order_acquire), slot.kind.load(std::memory_order_acquire), i + 1});
    }
    // Slice `now` may be half written, and overwrites slice now - slots_count_.
    const uint64_t now = added_.load(std::memory_order_acquire);
    const uint64_t whole = now >= slots_count_ ? now - slots_count_ + 1 : 0;
    if (whole > begin) {
      slices.erase(slices.begin(), slices.begin() + static_cast<ptrdiff_t>(std::min(whole, end) - begin));
    }
    return slices;
  }

 private:
  struct Slot {
    std::atomic<int64_t> begin_ns{0};
    std::atomic<int64_t> end_ns{0};
    std::atomic<uint64_t> value{0};
    std::atomic<uint32_t> kind{0};
  };

  const uint64_t slots_count_;  // One more than is kept, for the slice that is being written.
  const std::unique_ptr<Slot[]> slots_;
  std::atomic<uint64_t> added_{0};
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_PROFILE_TRACE_RING_H_
