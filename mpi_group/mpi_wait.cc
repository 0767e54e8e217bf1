#include "mpi_group/mpi_wait.h"

#include <sched.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace hooke {
namespace {

// While bytes flow, a poll in this time moves some; afterwards the peer is at other work, and this core may be what it
// needs.
constexpr absl::Duration kSpin = absl::Microseconds(20);
constexpr absl::Duration kYield = absl::Milliseconds(2);
constexpr absl::Duration kNap = absl::Microseconds(50);

}  // namespace

absl::Status MpiStatus(int code, absl::string_view what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return absl::InternalError(absl::StrCat(what, ": ", absl::string_view(text, length), " (MPI error ", code, ")"));
}

absl::StatusOr<bool> AwaitAll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses, absl::Time deadline) {
  const absl::Time start = absl::Now();
  while (true) {
    bool all_done = true;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] == MPI_REQUEST_NULL) continue;
      int done = 0;
      MPI_Status* const result = statuses.empty() ? MPI_STATUS_IGNORE : &statuses[i];
      absl::Status status = MpiStatus(MPI_Test(&requests[i], &done, result), "MPI_Test");
      if (!status.ok()) return status;
      all_done = all_done && done != 0;
    }
    if (all_done) return true;
    const absl::Time now = absl::Now();
    if (now >= deadline) return false;
    if (now - start > kYield) {
      absl::SleepFor(kNap);
    } else if (now - start > kSpin) {
      sched_yield();
    }
  }
}

}  // namespace hooke
