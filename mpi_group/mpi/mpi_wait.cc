#include "mpi_group/mpi/mpi_wait.h"

#include <sched.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// A wait spins this long, then yields until kYield, then naps. While bytes flow, a poll in the spinning time moves
// some. Later the peer is at other work and may need this core. Yielding at once, or napping earlier, gained nothing
// measurable at 2, 4 and 8 ranks on 2 cores.
constexpr absl::Duration kSpin = absl::Microseconds(20);
constexpr absl::Duration kYield = absl::Milliseconds(2);
constexpr absl::Duration kNap = absl::Microseconds(50);
// The time after which a wait first calls `watch`: soon, but so late that most waits have ended before. kWatch is the
// time between later calls.
constexpr absl::Duration kFirstWatch = absl::Milliseconds(1);
constexpr absl::Duration kWatch = absl::Milliseconds(4);

// Returns true if all requests are done. MPI_Test sets the requests that are done to MPI_REQUEST_NULL.
absl::StatusOr<bool> Poll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses) {
  bool all_done = true;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    int done = 0;
    MPI_Status* const result = statuses.empty() ? MPI_STATUS_IGNORE : &statuses[i];
    absl::Status status = MpiStatus(MPI_Test(&requests[i], &done, result), "MPI_Test");
    if (!status.ok()) return status;
    all_done = all_done && done != 0;
  }
  return all_done;
}

}  // namespace

absl::Status MpiStatus(int code, absl::string_view what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  int error_class = MPI_SUCCESS;
  if (MPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": a longer message came than was expected; all ranks must call the same operations with ",
                     "the same sizes"));
  }
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return absl::InternalError(absl::StrCat(what, ": ", absl::string_view(text, length), " (MPI error ", code, ")"));
}

absl::StatusOr<bool> AwaitAll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses, absl::Time deadline) {
  return AwaitAll(requests, statuses, deadline, [] { return absl::OkStatus(); });
}

absl::StatusOr<bool> AwaitAll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses, absl::Time deadline,
                              absl::FunctionRef<absl::Status()> watch) {
  absl::StatusOr<bool> done = Poll(requests, statuses);
  if (!done.ok() || *done) return done;
  const absl::Time start = SteadyNow();
  absl::Time next_watch = start + kFirstWatch;
  while (true) {
    done = Poll(requests, statuses);
    if (!done.ok() || *done) return done;
    const absl::Time now = SteadyNow();
    if (now >= deadline) return false;
    if (now >= next_watch) {
      absl::Status status = watch();
      if (!status.ok()) return status;
      next_watch = now + kWatch;
    }
    if (now - start > kYield) {
      absl::SleepFor(kNap);
    } else if (now - start > kSpin) {
      sched_yield();
    }
  }
}

}  // namespace hooke
