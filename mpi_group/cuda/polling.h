#ifndef HOOKE_MPI_GROUP_CUDA_POLLING_H_
#define HOOKE_MPI_GROUP_CUDA_POLLING_H_

// Waits for a device, which can only be asked whether it is done: a wait that CUDA offers has no deadline. Knows
// nothing of CUDA.

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

// How long a thread that has waited for `waited` sleeps before it asks again. Zero for the first 2 ms, because a nap
// takes 50 us or more; the thread then only yields its core. Later a fiftieth of `waited`, at most 1 ms. So a wait ends
// about 2 % late at most, and a long one needs a few per cent of a core.
absl::Duration NapAfter(absl::Duration waited);

// Calls `done` until it returns true, with naps between. An error of `done` ends the wait. DEADLINE_EXCEEDED: it has
// not returned true by the deadline; the message says "waited for `what`". `healthy` is called before each nap, which
// is after the first 2 ms, and at the deadline; its first error ends the wait.
absl::Status PollUntil(absl::Time deadline, absl::string_view what, const std::function<absl::StatusOr<bool>()>& done,
                       const std::function<absl::Status()>& healthy);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_POLLING_H_
