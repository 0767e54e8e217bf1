#include "mpi_group/profile/profile.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpi_group/profile/profile_histogram.h"
#include "mpi_group/profile/trace_ring.h"

namespace hooke {
namespace {

// A clock that the test sets.
struct FakeClock {
  int64_t now = 1000;
  ProfileOptions Options() {
    ProfileOptions options;
    options.clock = [this] { return now; };
    return options;
  }
};

const CollectiveStatistics* Find(const Profile& profile, Operation operation, uint64_t bytes, bool fused = false) {
  for (const CollectiveStatistics& some : profile.collectives) {
    const CollectiveKind& kind = some.kind;
    if (kind.operation == operation && kind.fused == fused && kind.bytes_min == bytes && kind.bytes_max == bytes) {
      return &some;
    }
  }
  return nullptr;
}

// The bucket of the q-quantile: the value with rank ceil(q n).
CollectiveStatistics::Bucket QuantileBucket(const CollectiveStatistics& some, double q) {
  uint64_t left = static_cast<uint64_t>(std::max(1.0, std::ceil(q * static_cast<double>(some.calls))));
  for (const CollectiveStatistics::Bucket& bucket : some.buckets) {
    if (left <= bucket.calls) return bucket;
    left -= bucket.calls;
  }
  return {};
}

// Buckets cover all durations without gap or overlap, and none but the last is wider than 1 ns or 1/16 of its begin.
TEST(ProfileHistogramTest, BucketsAreCompleteAndNarrow) {
  for (size_t i = 0; i < ProfileHistogram::kBuckets; ++i) {
    const uint64_t begin = ProfileHistogram::Begin(i);
    const uint64_t end = ProfileHistogram::End(i);
    ASSERT_LT(begin, end);
    EXPECT_EQ(ProfileHistogram::BucketOf(static_cast<int64_t>(begin)), i);
    if (i + 1 == ProfileHistogram::kBuckets) break;
    EXPECT_EQ(ProfileHistogram::BucketOf(static_cast<int64_t>(end - 1)), i);
    EXPECT_EQ(ProfileHistogram::Begin(i + 1), end);
    EXPECT_LE(end - begin, std::max<uint64_t>(1, begin / 16));
  }
  EXPECT_EQ(ProfileHistogram::BucketOf(-5), 0u);
  EXPECT_EQ(ProfileHistogram::BucketOf(std::numeric_limits<int64_t>::max()), ProfileHistogram::kBuckets - 1);
}

// The profile agrees with a slow exact reference: counts, sums, minimum and maximum are exact. The exact quantiles lie
// in the buckets that the histogram gives.
TEST(ProfileTest, AgreesWithExactReference) {
  FakeClock clock;
  ProfileRecorder recorder(clock.Options());
  ProfileLane* lane = recorder.AddLane();
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> times(11, 2);  // Around 60 us, from nanoseconds to seconds.
  std::map<std::tuple<int, bool, uint64_t>, std::vector<int64_t>> reference;
  const uint64_t sizes[] = {0, 4, 1000003, 1 << 20};
  for (int i = 0; i < 20000; ++i) {
    CollectiveCall call;
    call.operation = kAllOperations[random() % 6];
    call.fused = random() % 2 == 0;
    call.bytes = sizes[random() % 4];
    call.begin_ns = i;
    call.end_ns = i + static_cast<int64_t>(times(random));
    lane->Record(call);
    reference[{static_cast<int>(call.operation), call.fused, call.bytes}].push_back(call.end_ns - call.begin_ns);
  }
  const Profile profile = recorder.Snapshot();
  EXPECT_EQ(profile.collectives.size(), reference.size());
  for (auto& [key, exact] : reference) {
    const auto& [operation, fused, bytes] = key;
    const CollectiveStatistics* some = Find(profile, static_cast<Operation>(operation), bytes, fused);
    ASSERT_NE(some, nullptr);
    std::sort(exact.begin(), exact.end());
    EXPECT_EQ(some->calls, exact.size());
    EXPECT_EQ(some->bytes, exact.size() * bytes);
    EXPECT_EQ(some->time_ns, static_cast<uint64_t>(std::accumulate(exact.begin(), exact.end(), int64_t{0})));
    EXPECT_EQ(some->min_ns, static_cast<uint64_t>(exact.front()));
    EXPECT_EQ(some->max_ns, static_cast<uint64_t>(exact.back()));
    for (double q : {0.0, 0.5, 0.99, 1.0}) {
      const size_t rank = static_cast<size_t>(std::max(1.0, std::ceil(q * static_cast<double>(exact.size()))));
      const auto value = static_cast<uint64_t>(exact[rank - 1]);
      const CollectiveStatistics::Bucket bucket = QuantileBucket(*some, q);
      EXPECT_LE(bucket.begin_ns, value);
      EXPECT_GT(bucket.end_ns, value);
    }
  }
}

// If there are more sizes than exact_sizes_max, later sizes are counted in their bins, the powers of two. No call is
// lost.
TEST(ProfileTest, BoundsExactSizes) {
  FakeClock clock;
  ProfileOptions options = clock.Options();
  options.exact_sizes_max = 3;
  ProfileRecorder recorder(options);
  ProfileLane* lane = recorder.AddLane();
  for (uint64_t bytes = 1; bytes <= 1000; ++bytes) lane->Record({Operation::kBroadcast, false, bytes, 0, 10});
  const Profile profile = recorder.Snapshot();
  uint64_t calls = 0, bytes = 0;
  for (const CollectiveStatistics& some : profile.collectives) {
    calls += some.calls;
    bytes += some.bytes;
    const SizeBin bin = SizeBinOf(some.kind.bytes_max);
    if (some.kind.bytes_min != some.kind.bytes_max) {
      EXPECT_EQ(some.kind.bytes_min, bin.bytes_min);
    }
  }
  EXPECT_EQ(calls, 1000u);
  EXPECT_EQ(bytes, 1000u * 1001 / 2);
  EXPECT_EQ(profile.collectives.size(), 3u + 8);  // The exact sizes 1, 2, 3, then the bins [4, 7] to [512, 1023].
}

// Each power of two begins a bin.
TEST(ProfileTest, SizeBins) {
  const struct {
    uint64_t bytes, min, max;
  } cases[] = {{0, 0, 0},
               {1, 1, 1},
               {2, 2, 3},
               {3, 2, 3},
               {4, 4, 7},
               {1 << 20, 1 << 20, (2 << 20) - 1},
               {~uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}};
  for (const auto& one : cases) {
    EXPECT_EQ(SizeBinOf(one.bytes).bytes_min, one.min);
    EXPECT_EQ(SizeBinOf(one.bytes).bytes_max, one.max);
  }
}

// Time in steps is the time of the phases with `in_step`, the current one included. Calls outside such phases add
// nothing to it.
TEST(ProfileTest, StepTime) {
  FakeClock clock;
  ProfileRecorder recorder(clock.Options());
  ProfileLane* lane = recorder.AddLane();
  const auto enter = [&](uint32_t phase, bool in_step, int64_t at) {
    clock.now = at;
    recorder.Enter({phase, in_step, 5});
  };
  enter(1, false, 2000);
  lane->Record({Operation::kBroadcast, false, 8, 2100, 2200});
  enter(3, true, 3000);
  enter(4, true, 3500);
  lane->Record({Operation::kAllReduce, false, 8, 3500, 3700});
  clock.now = 4000;
  const Profile profile = recorder.Snapshot();
  EXPECT_EQ(profile.step_ns, 1000u);
  EXPECT_EQ(Find(profile, Operation::kBroadcast, 8)->step_ns, 0u);
  EXPECT_EQ(Find(profile, Operation::kAllReduce, 8)->step_ns, 200u);
  // The trace has ended phases on track 0 and calls on track 1, sorted by begin.
  ASSERT_EQ(profile.events.size(), 4u);
  EXPECT_EQ(profile.events[0].phase, 1u);
  EXPECT_EQ(profile.events[1].track, 1u);
  EXPECT_EQ(profile.events[2].end_ns, 3500);
  EXPECT_EQ(profile.events[2].step, 5u);
  EXPECT_EQ(profile.events[3].operation, Operation::kAllReduce);
}

// The trace keeps the last events, and the recorder the first lanes, so that memory is bounded.
TEST(ProfileTest, BoundsEventsAndLanes) {
  FakeClock clock;
  ProfileOptions options = clock.Options();
  options.events_max = 10;
  options.lanes_max = 1;
  ProfileRecorder recorder(options);
  ProfileLane* lane = recorder.AddLane();
  EXPECT_EQ(recorder.AddLane(), nullptr);
  recorder.LeaveOut();
  for (int64_t i = 0; i < 100; ++i) lane->Record({Operation::kBarrier, false, 0, i, i + 1});
  const Profile profile = recorder.Snapshot();
  ASSERT_EQ(profile.events.size(), 10u);
  EXPECT_EQ(profile.events.front().begin_ns, 90);
  EXPECT_EQ(profile.events.back().begin_ns, 99);
  EXPECT_EQ(profile.events.back().call, profile.events.front().call + 9);
  EXPECT_EQ(profile.calls_left_out, 1u);
}

// Statistics of a size name the algorithm of its first call.
TEST(ProfileTest, NamesTheAlgorithm) {
  FakeClock clock;
  ProfileRecorder recorder(clock.Options());
  ProfileLane* lane = recorder.AddLane();
  for (uint64_t bytes : {8, 1000, 8, 1000})
    lane->Record({Operation::kAllReduce, false, bytes, 0, 1, bytes > 100 ? "ring" : "tree"});
  EXPECT_EQ(Find(recorder.Snapshot(), Operation::kAllReduce, 8)->algorithm, "tree");
  EXPECT_EQ(Find(recorder.Snapshot(), Operation::kAllReduce, 1000)->algorithm, "ring");
}

// A thread that reads while another records sees whole events, in order, and never sees a count go down.
TEST(ProfileTest, ReadsWhileRecording) {
  FakeClock clock;
  ProfileOptions options = clock.Options();
  options.events_max = 64;
  ProfileRecorder recorder(options);
  ProfileLane* lane = recorder.AddLane();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int64_t i = 1; i < 200000 && !stop; ++i) {
      lane->Record({Operation::kAllReduce, false, static_cast<uint64_t>(i), i, 2 * i});
    }
    stop = true;
  });
  uint64_t before = 0;
  while (!stop) {
    const Profile profile = recorder.Snapshot();
    uint64_t calls = 0;
    for (const CollectiveStatistics& some : profile.collectives) calls += some.calls;
    EXPECT_GE(calls, before);
    before = calls;
    int64_t last = 0;
    for (const ProfileEvent& event : profile.events) {
      ASSERT_EQ(event.end_ns, 2 * event.begin_ns);
      ASSERT_EQ(event.bytes, static_cast<uint64_t>(event.begin_ns));
      ASSERT_GT(event.begin_ns, last);
      last = event.begin_ns;
    }
  }
  writer.join();
}

}  // namespace
}  // namespace hooke
