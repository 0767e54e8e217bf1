#include "mpi_group/mpi/mpi_watchdog.h"

#include <chrono>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// The pause between two looks. The margin is seconds long, so a shorter pause would cost time and gain nothing.
constexpr std::chrono::milliseconds kLook(500);

}  // namespace

MpiWatchdog::~MpiWatchdog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

MpiWatchdog::Watch::Watch(MpiWatchdog& watchdog, absl::Time deadline, absl::string_view what, int peer)
    : watchdog_(watchdog) {
  const std::lock_guard<std::mutex> lock(watchdog.mutex_);
  watchdog.limit_ = deadline + kMargin;
  watchdog.what_ = what;
  watchdog.peer_ = peer;
}

MpiWatchdog::Watch::~Watch() {
  const std::lock_guard<std::mutex> lock(watchdog_.mutex_);
  watchdog_.limit_ = absl::InfiniteFuture();
}

void MpiWatchdog::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, kLook, [this] { return ends_; })) {
    if (SteadyNow() < limit_) continue;
    std::cerr << absl::StrCat("rank ", rank_, ": MPI has not returned for ", absl::FormatDuration(kMargin),
                              " after the deadline of ", what_, peer_ < 0 ? "" : absl::StrCat(" rank ", peer_),
                              "; a peer has probably died. This rank ends.\n");
    MpiSession::ExitWithoutFinalize(1);
  }
}

}  // namespace hooke
