#ifndef HOOKE_MPI_GROUP_MPI_MPI_SESSION_H_
#define HOOKE_MPI_GROUP_MPI_MPI_SESSION_H_

// A process's part in MPI, from MPI_Init_thread to MPI_Finalize; one per process. Made first in a rank's main,
// destroyed last, after all groups made from it.
//
// MPI_Finalize waits for all ranks, without a deadline. So it is called only if nothing failed and all ranks meet
// within `finalize_deadline` in Finish. Otherwise the process is to end with a code other than 0 and without
// MPI_Finalize, by ExitWithoutFinalize: mpirun then ends the other ranks.

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hooke {

class MpiSession {
 public:
  struct Options {
    absl::Duration finalize_deadline = absl::Seconds(10);
    // Several threads call MPI at the same time, as those of a group and its clones do. Costs each call a lock.
    bool concurrent = false;
  };

  // FAILED_PRECONDITION: MPI offers no MPI_THREAD_SERIALIZED, or, concurrent, no MPI_THREAD_MULTIPLE. INTERNAL: MPI's
  // own message.
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start(const Options& options);
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start() { return Start(Options()); }

  // Finishes, if that was not done.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // In MPI_COMM_WORLD.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool concurrent() const { return options_.concurrent; }

  // The end of MPI in this process; collective. After an error (DEADLINE_EXCEEDED: not all ranks came;
  // FAILED_PRECONDITION: the session is failed; INTERNAL: MPI's own message) the process ends by ExitWithoutFinalize.
  absl::Status Finish();

  // After a failed collective: MPI may be in any state, and no call to it may be counted on. Transport::Settle tries.
  void MarkFailed() { failed_ = true; }
  bool failed() const { return failed_; }

  // Ends the process at once, as after a failure: flushes the standard streams, runs no destructors and no exit
  // handlers, for those of MPI libraries may wait for ranks that are gone. `code` is not 0.
  [[noreturn]] static void ExitWithoutFinalize(int code);

 private:
  MpiSession(const Options& options, int rank, int size) : options_(options), rank_(rank), size_(size) {}

  const Options options_;
  const int rank_;
  const int size_;
  std::atomic<bool> failed_ = false;  // Set by the threads of any group.
  bool finished_ = false;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_SESSION_H_
