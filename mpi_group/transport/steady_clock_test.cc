#include "mpi_group/transport/steady_clock.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "mpi_group/sockets/socket_ranks.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/transport.h"

namespace {

std::atomic<int> step_seconds{0};

}  // namespace

// Replaces the function through which the C++ libraries read clocks, so that the test can set the machine's clock.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += step_seconds;
  return result;
}

namespace hooke {
namespace {

// In process and over sockets, setting the machine's clock forward or back by hours neither ends a wait early nor
// prolongs it.
TEST(SteadyClockTest, ClockThatIsSet) {
  for (int hours : {1, -2, 1}) {
    SocketRanks by_sockets({0, 1});
    const std::vector<std::unique_ptr<Transport>> in_process = MakeInProcessTransports(2);
    for (Transport* transport : {&by_sockets[0], in_process[0].get()}) {
      const absl::Time wall = absl::Now();
      const absl::Time start = SteadyNow();
      step_seconds += hours * 3600;
      EXPECT_GT(absl::AbsDuration(absl::Now() - wall), absl::Minutes(59));  // The clock was set.
      char byte = 0;
      const absl::Status status = transport->Receive({1, absl::MakeSpan(&byte, 1)}, start + absl::Milliseconds(50));
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_GE(SteadyNow() - start, absl::Milliseconds(50));
      EXPECT_LT(SteadyNow() - start, absl::Seconds(30));
    }
  }
}

}  // namespace
}  // namespace hooke
