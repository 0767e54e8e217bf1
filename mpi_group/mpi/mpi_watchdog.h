#ifndef HOOKE_MPI_GROUP_MPI_MPI_WATCHDOG_H_
#define HOOKE_MPI_GROUP_MPI_MPI_WATCHDOG_H_

// A thread that ends the process, with a message about the wait, if a wait outlasts its deadline by far. It is needed
// because MPI may never return from a call when a peer has died: Open MPI over TCP can spin in its own event loop. Our
// code then has no chance to look at a deadline.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

class MpiWatchdog {
 public:
  // Time that a wait may take beyond its deadline, for polls, for settling a failure, and on a busy machine.
  static constexpr absl::Duration kMargin = absl::Seconds(10);

  explicit MpiWatchdog(int rank) : rank_(rank), thread_([this] { Run(); }) {}
  ~MpiWatchdog();
  MpiWatchdog(const MpiWatchdog&) = delete;
  MpiWatchdog& operator=(const MpiWatchdog&) = delete;

  // Guards a wait from construction to destruction; one at a time. `what` must outlive it. `peer` < 0: the wait is for
  // no single rank.
  class Watch {
   public:
    Watch(MpiWatchdog& watchdog, absl::Time deadline, absl::string_view what, int peer = -1);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    MpiWatchdog& watchdog_;
  };

 private:
  void Run();

  const int rank_;
  // `mutex_` guards the four fields below `ended_`. Both are of the standard library, because a wait of Abseil's
  // depends on the machine's clock. If somebody sets that back by an hour, the thread would not look at `limit_` for an
  // hour.
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  absl::Time limit_ = absl::InfiniteFuture();
  absl::string_view what_;
  int peer_ = -1;
  std::thread thread_;  // The last member, because the thread uses the others.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_WATCHDOG_H_
