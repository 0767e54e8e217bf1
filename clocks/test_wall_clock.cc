#include "clocks/test_wall_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace {

std::atomic<int64_t> step_seconds{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += step_seconds;
  return result;
}

namespace hooke {

void StepWallClock(absl::Duration by) { step_seconds += absl::ToInt64Seconds(by); }

}  // namespace hooke
