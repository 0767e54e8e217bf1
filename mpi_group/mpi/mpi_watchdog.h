#ifndef HOOKE_MPI_GROUP_MPI_MPI_WATCHDOG_H_
#define HOOKE_MPI_GROUP_MPI_MPI_WATCHDOG_H_

// MPI may not return from a call when a peer has died (Open MPI over TCP can turn in its own event loop): no deadline
// of ours is looked at then. A thread that ends the process when a wait outlasts its deadline by far, with words about
// what was waited for. Used by mpi_transport.cc.

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hooke {

class MpiWatchdog {
 public:
  // What a wait may take beyond its deadline: polls, a failure's settlement, a machine under load.
  static constexpr absl::Duration kMargin = absl::Seconds(10);

  explicit MpiWatchdog(int rank) : rank_(rank), thread_([this] { Run(); }) {}
  ~MpiWatchdog();
  MpiWatchdog(const MpiWatchdog&) = delete;
  MpiWatchdog& operator=(const MpiWatchdog&) = delete;

  // A wait, from its construction to its destruction; one at a time. `what` outlives it. `peer` < 0: of no single rank.
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
  absl::Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time limit_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::string_view what_ ABSL_GUARDED_BY(mutex_);
  int peer_ ABSL_GUARDED_BY(mutex_) = -1;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_WATCHDOG_H_
