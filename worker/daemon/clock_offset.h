#ifndef HOOKE_WORKER_DAEMON_CLOCK_OFFSET_H_
#define HOOKE_WORKER_DAEMON_CLOCK_OFFSET_H_

// How this machine's monotonic clock relates to the coordinator's clock, from round trips: what is sent at s, answered
// with the coordinator's time c and back at r was answered between s and r, so c - (s + r) / 2 is off by at most
// (r - s) / 2. The best of the last round trips counts; with its age its bound grows by how far two clocks may drift
// apart. Used by session.h, which asks once a second. Pure, not thread-safe.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace hooke {

// All in nanoseconds.
struct ClockRoundTrip {
  int64_t sent = 0;      // This machine's clock.
  int64_t answered = 0;  // The coordinator's.
  int64_t received = 0;  // This machine's.
};

class ClockOffset {
 public:
  static constexpr size_t kRoundTripsMax = 16;
  static constexpr int64_t kDriftPerBillion = 200000;  // 200 ppm; quartz clocks stay below 100 each.

  // Anything that cannot be one (answered before it was sent, times out of range) is ignored.
  void Add(const ClockRoundTrip& trip);

  struct Estimate {
    int64_t offset = 0;  // To be added to this machine's clock.
    int64_t error = 0;   // The true offset is at most so far away.
  };
  // Nothing before the first round trip.
  std::optional<Estimate> Best(int64_t now) const;

 private:
  std::deque<ClockRoundTrip> trips_;
};

// What tells this machine's monotonic clock from others': the boot id, and the time namespace where there is one. "" if
// the kernel does not say.
std::string MachineClockName();

}  // namespace hooke

#endif  // HOOKE_WORKER_DAEMON_CLOCK_OFFSET_H_
