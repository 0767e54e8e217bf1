#ifndef HOOKE_CLOCKS_CLOCK_OFFSET_H_
#define HOOKE_CLOCKS_CLOCK_OFFSET_H_

// Estimates the offset of the coordinator's clock from this machine's monotonic clock, from round trips.
//
// A message is sent at s, answered with the coordinator's time c, and its answer is received at r. The coordinator
// answered between s and r, so the offset c - (s + r) / 2 is wrong by at most (r - s) / 2.
//
// The estimate comes from the round trip with the smallest bound among the last ones. A bound grows with its age,
// because two clocks may drift apart. Pure, not thread-safe.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace hooke {

// All times are in nanoseconds.
struct ClockRoundTrip {
  int64_t sent = 0;      // By this machine's clock.
  int64_t answered = 0;  // By the coordinator's clock.
  int64_t received = 0;  // By this machine's clock.
};

class ClockOffset {
 public:
  static constexpr size_t kRoundTripsMax = 16;
  static constexpr int64_t kDriftPerBillion = 200000;  // 200 ppm; quartz clocks stay below 100 each.

  // Ignores an impossible round trip: received before it was sent, or with a time out of range.
  void Add(const ClockRoundTrip& trip);

  struct Estimate {
    int64_t offset = 0;  // This machine's time plus `offset` is the coordinator's time.
    int64_t error = 0;   // Bound: the true offset is at most this far from `offset`.
  };
  // Returns the best estimate at time `now`; nullopt before the first round trip.
  std::optional<Estimate> Best(int64_t now) const;

 private:
  std::deque<ClockRoundTrip> trips_;
};

// Returns a name for this machine's monotonic clock that no other clock has. It is the boot id, and the time namespace
// if there is one. Returns "" if the kernel does not show a boot id.
std::string MachineClockName();

}  // namespace hooke

#endif  // HOOKE_CLOCKS_CLOCK_OFFSET_H_
