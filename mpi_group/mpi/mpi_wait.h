#ifndef HOOKE_MPI_GROUP_MPI_MPI_WAIT_H_
#define HOOKE_MPI_GROUP_MPI_MPI_WAIT_H_

// Waits for MPI requests with a deadline, and turns MPI's error codes into absl::Status.

#include <mpi.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

// Converts an MPI error code. OK for MPI_SUCCESS. INVALID_ARGUMENT if a message was longer than its receiver expected.
// Any other code becomes INTERNAL, with `what` and MPI's message.
absl::Status MpiStatus(int code, absl::string_view what);

// Waits until all requests are done or the deadline has passed. Returns true if all are done. Requests that are done
// become MPI_REQUEST_NULL. If MPI fails a request, the error is that of MpiStatus. `statuses` receives MPI's results;
// it has as many elements as `requests`, or none.
//
// AwaitAll() polls, because MPI moves bytes only inside its calls: first without pause, then yielding, then with naps,
// as ranks may outnumber cores.
absl::StatusOr<bool> AwaitAll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses, absl::Time deadline);
// Does the same, but also calls `watch`, and returns its error if it returns one. The first call of `watch` comes a
// millisecond after the wait began, later ones every few milliseconds.
absl::StatusOr<bool> AwaitAll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses, absl::Time deadline,
                              absl::FunctionRef<absl::Status()> watch);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_WAIT_H_
