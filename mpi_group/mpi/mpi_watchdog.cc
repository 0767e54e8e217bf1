#include "mpi_group/mpi/mpi_watchdog.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// The pause between two looks. The margin is seconds long, so a shorter pause would cost time and gain nothing.
constexpr absl::Duration kLook = absl::Milliseconds(500);

}  // namespace

MpiWatchdog::~MpiWatchdog() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
  }
  thread_.join();
}

MpiWatchdog::Watch::Watch(MpiWatchdog& watchdog, absl::Time deadline, absl::string_view what, int peer)
    : watchdog_(watchdog) {
  absl::MutexLock lock(&watchdog.mutex_);
  watchdog.limit_ = deadline + kMargin;
  watchdog.what_ = what;
  watchdog.peer_ = peer;
}

MpiWatchdog::Watch::~Watch() {
  absl::MutexLock lock(&watchdog_.mutex_);
  watchdog_.limit_ = absl::InfiniteFuture();
}

void MpiWatchdog::Run() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&ends_), kLook)) {
    if (SteadyNow() < limit_) continue;
    std::cerr << absl::StrCat("rank ", rank_, ": MPI has not returned for ", absl::FormatDuration(kMargin),
                              " after the deadline of ", what_, peer_ < 0 ? "" : absl::StrCat(" rank ", peer_),
                              "; a peer has probably died. This rank ends.\n");
    MpiSession::ExitWithoutFinalize(1);
  }
}

}  // namespace hooke
