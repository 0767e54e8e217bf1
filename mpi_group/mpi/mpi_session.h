#ifndef HOOKE_MPI_GROUP_MPI_MPI_SESSION_H_
#define HOOKE_MPI_GROUP_MPI_MPI_SESSION_H_

// A process's use of MPI, from MPI_Init_thread to MPI_Finalize; one per process. A rank's main makes it first and
// destroys it last, after all groups that were made from it.
//
// MPI_Finalize waits for all ranks, without a deadline. So it is called only if nothing failed and all ranks meet in
// Finish within `finalize_deadline`. Otherwise the process must end by ExitWithoutFinalize, with a code other than 0:
// mpirun then ends the other ranks.

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
    // True if several threads call MPI at the same time, as a group and its clones do. It costs each call a lock.
    bool concurrent = false;
  };

  // FAILED_PRECONDITION: MPI does not offer MPI_THREAD_SERIALIZED, or, if concurrent, MPI_THREAD_MULTIPLE. INTERNAL: an
  // error of MPI, with its message.
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start(const Options& options);
  static absl::StatusOr<std::unique_ptr<MpiSession>> Start() { return Start(Options()); }

  // Calls Finish() if it was not called before.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Rank and size in MPI_COMM_WORLD.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool concurrent() const { return options_.concurrent; }

  // Ends MPI in this process; collective. After an error the process must end by ExitWithoutFinalize.
  // DEADLINE_EXCEEDED: not all ranks came. FAILED_PRECONDITION: the session is failed. INTERNAL: an error of MPI, with
  // its message.
  absl::Status Finish();

  // Notes that a collective failed. From then on MPI may be in any state, and nothing relies on calls to it; only
  // Transport::Settle still tries some.
  void MarkFailed() { failed_ = true; }
  bool failed() const { return failed_; }

  // Ends the process at once, after a failure. It flushes the standard streams but runs no destructors and no exit
  // handlers, because those of MPI libraries may wait for ranks that are gone. `code` is not 0.
  [[noreturn]] static void ExitWithoutFinalize(int code);

 private:
  MpiSession(const Options& options, int rank, int size) : options_(options), rank_(rank), size_(size) {}

  const Options options_;
  const int rank_;
  const int size_;
  std::atomic<bool> failed_ = false;  // Atomic, as the threads of all groups set it.
  bool finished_ = false;
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_SESSION_H_
