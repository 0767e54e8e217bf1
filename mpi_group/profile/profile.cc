#include "mpi_group/profile/profile.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace hooke {
namespace {

size_t BinOf(uint64_t bytes) { return bytes == 0 ? 0 : static_cast<size_t>(64 - __builtin_clzll(bytes)); }

uint64_t HashOf(const CollectiveCall& call) {
  const uint64_t what = static_cast<uint64_t>(call.operation) * 2 + (call.fused ? 1 : 0);
  const uint64_t mixed = (call.bytes * 16 + what) * 0x9e3779b97f4a7c15;
  return mixed ^ (mixed >> 32);
}

// Adds to a counter. Only this thread changes the counter, so no atomic read-modify-write is needed.
void Add(std::atomic<uint64_t>& counter, uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// Encodes operation and `fused` in TraceSlice::kind.
uint32_t SliceKind(const CollectiveCall& call) {
  return static_cast<uint32_t>(call.operation) * 2 + (call.fused ? 1 : 0);
}

ProfileEvent LaneEvent(uint32_t track, const TraceSlice& slice) {
  ProfileEvent event;
  event.track = track;
  event.begin_ns = slice.begin_ns;
  event.end_ns = slice.end_ns;
  event.operation = static_cast<Operation>(slice.kind / 2);
  event.fused = slice.kind % 2 != 0;
  event.bytes = slice.value;
  event.call = slice.number;
  return event;
}

ProfileEvent PhaseEvent(const TraceSlice& slice) {
  ProfileEvent event;
  event.begin_ns = slice.begin_ns;
  event.end_ns = slice.end_ns;
  event.phase = slice.kind;
  event.step = slice.value;
  return event;
}

}  // namespace

SizeBin SizeBinOf(uint64_t bytes) {
  const size_t bin = BinOf(bytes);
  if (bin == 0) return {0, 0};
  const uint64_t begin = uint64_t{1} << (bin - 1);
  return {begin, begin + (begin - 1)};
}

// The statistics of one kind of call. The lane's thread writes an entry, any thread reads it. The histogram also gives
// the number of calls.
struct ProfileLane::Entry {
  explicit Entry(const CollectiveKind& of) : kind(of) {}

  const CollectiveKind kind;
  std::string algorithm;
  ProfileHistogram times;
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> time_ns{0};
  std::atomic<uint64_t> step_ns{0};
  std::atomic<uint64_t> min_ns{std::numeric_limits<uint64_t>::max()};
  std::atomic<uint64_t> max_ns{0};
};

ProfileLane::ProfileLane(const ProfileOptions& options, const std::atomic<bool>& in_step)
    : options_(options),
      in_step_(in_step),
      // The table stays at most a quarter full, so that probing ends soon.
      exact_(4 * std::max<size_t>(options.exact_sizes_max, 1)),
      entries_(options.exact_sizes_max + kEntriesMax),
      ring_(options.events_max) {}

ProfileLane::~ProfileLane() = default;

void ProfileLane::Record(const CollectiveCall& call) {
  Entry& entry = EntryOf(call);
  const int64_t elapsed = std::max<int64_t>(call.end_ns - call.begin_ns, 0);
  const auto ns = static_cast<uint64_t>(elapsed);
  Add(entry.bytes, call.bytes);
  Add(entry.time_ns, ns);
  if (in_step_.load(std::memory_order_relaxed)) Add(entry.step_ns, ns);
  if (ns < entry.min_ns.load(std::memory_order_relaxed)) entry.min_ns.store(ns, std::memory_order_relaxed);
  if (ns > entry.max_ns.load(std::memory_order_relaxed)) entry.max_ns.store(ns, std::memory_order_relaxed);
  entry.times.Add(elapsed);
  ring_.Add({call.begin_ns, call.begin_ns + elapsed, call.bytes, SliceKind(call)});
}

ProfileLane::Entry& ProfileLane::EntryOf(const CollectiveCall& call) {
  for (uint64_t i = HashOf(call);; ++i) {
    Entry*& entry = exact_[i % exact_.size()];
    if (entry == nullptr) {
      if (exact_sizes_ == options_.exact_sizes_max) break;
      ++exact_sizes_;
      entry = &Publish({call.operation, call.fused, call.bytes, call.bytes}, call.algorithm);
      return *entry;
    }
    const CollectiveKind& kind = entry->kind;
    if (kind.bytes_min == call.bytes && kind.operation == call.operation && kind.fused == call.fused) return *entry;
  }
  Entry*& entry = bins_[SliceKind(call) * kBins + BinOf(call.bytes)];
  if (entry == nullptr) {
    const SizeBin bin = SizeBinOf(call.bytes);
    entry = &Publish({call.operation, call.fused, bin.bytes_min, bin.bytes_max}, "");
  }
  return *entry;
}

ProfileLane::Entry& ProfileLane::Publish(const CollectiveKind& kind, absl::string_view algorithm) {
  const size_t index = entries_count_.load(std::memory_order_relaxed);
  entries_[index] = std::make_unique<Entry>(kind);
  entries_[index]->algorithm = std::string(algorithm);
  entries_count_.store(index + 1, std::memory_order_release);
  return *entries_[index];
}

void ProfileLane::AppendTo(std::vector<CollectiveStatistics>& statistics) const {
  const size_t count = entries_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const Entry& entry = *entries_[i];
    CollectiveStatistics some;
    some.kind = entry.kind;
    some.algorithm = entry.algorithm;
    for (size_t bucket = 0; bucket < ProfileHistogram::kBuckets; ++bucket) {
      const uint64_t calls = entry.times.calls(bucket);
      if (calls == 0) continue;
      some.calls += calls;
      some.buckets.push_back({ProfileHistogram::Begin(bucket), ProfileHistogram::End(bucket), calls});
    }
    if (some.calls == 0) continue;  // Another thread is adding the entry's first call right now.
    some.bytes = entry.bytes.load(std::memory_order_relaxed);
    some.time_ns = entry.time_ns.load(std::memory_order_relaxed);
    some.step_ns = entry.step_ns.load(std::memory_order_relaxed);
    some.min_ns = entry.min_ns.load(std::memory_order_relaxed);
    some.max_ns = entry.max_ns.load(std::memory_order_relaxed);
    statistics.push_back(std::move(some));
  }
}

ProfileRecorder::ProfileRecorder(ProfileOptions options)
    : options_(std::move(options)), phase_since_ns_(options_.clock()), phases_(options_.events_max) {}

ProfileLane* ProfileRecorder::AddLane() {
  absl::MutexLock lock(&mutex_);
  if (lanes_.size() >= options_.lanes_max) return nullptr;
  return lanes_.emplace_back(std::make_unique<ProfileLane>(options_, in_step_)).get();
}

void ProfileRecorder::Enter(const Phase& phase) {
  absl::MutexLock lock(&mutex_);
  const int64_t now = std::max(options_.clock(), phase_since_ns_);
  if (phase_.in_step) step_ns_ += static_cast<uint64_t>(now - phase_since_ns_);
  // The time before the first phase belongs to no phase.
  if (phase_.phase != 0) phases_.Add({phase_since_ns_, now, phase_.step, phase_.phase});
  phase_ = phase;
  phase_since_ns_ = now;
  in_step_.store(phase.in_step, std::memory_order_relaxed);
}

Profile ProfileRecorder::Snapshot() const {
  Profile profile;
  profile.calls_left_out = calls_left_out_.load(std::memory_order_relaxed);
  {
    absl::MutexLock lock(&mutex_);
    profile.step_ns = step_ns_;
    if (phase_.in_step)
      profile.step_ns += static_cast<uint64_t>(std::max<int64_t>(options_.clock() - phase_since_ns_, 0));
    for (const TraceSlice& slice : phases_.Read()) profile.events.push_back(PhaseEvent(slice));
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i]->AppendTo(profile.collectives);
      for (const TraceSlice& slice : lanes_[i]->Trace()) {
        profile.events.push_back(LaneEvent(static_cast<uint32_t>(i + 1), slice));
      }
    }
  }
  std::stable_sort(profile.events.begin(), profile.events.end(),
                   [](const ProfileEvent& a, const ProfileEvent& b) { return a.begin_ns < b.begin_ns; });
  if (profile.events.size() > options_.events_max) {
    profile.events.erase(profile.events.begin(), profile.events.end() - static_cast<ptrdiff_t>(options_.events_max));
  }
  return profile;
}

int64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace hooke
