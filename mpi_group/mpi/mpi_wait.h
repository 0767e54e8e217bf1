#ifndef HOOKE_MPI_GROUP_MPI_MPI_WAIT_H_
#define HOOKE_MPI_GROUP_MPI_MPI_WAIT_H_

// MPI's waits with a deadline, and its error codes as absl::Status. Used by the other mpi_*.cc files.

#include <mpi.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

// OK for MPI_SUCCESS; else INTERNAL with MPI's message after `what`, or INVALID_ARGUMENT where a message was longer
// than its receiver expected.
absl::Status MpiStatus(int code, absl::string_view what);

// Whether all requests are done before the deadline; those that are become MPI_REQUEST_NULL. MpiStatus if MPI fails
// one. `statuses` are MPI's, as many as requests, or none. Polls, for only that moves the bytes: hard at first, then
// with ever more room for others, as ranks may outnumber cores.
absl::StatusOr<bool> AwaitAll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses, absl::Time deadline);
// The same; ends with the error of `watch` if it returns one. That is called a millisecond after the wait began, and
// then every few.
absl::StatusOr<bool> AwaitAll(absl::Span<MPI_Request> requests, absl::Span<MPI_Status> statuses, absl::Time deadline,
                              absl::FunctionRef<absl::Status()> watch);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_MPI_MPI_WAIT_H_
