#ifndef HOOKE_WORKER_REPORT_WANT_OF_SERVER_H_
#define HOOKE_WORKER_REPORT_WANT_OF_SERVER_H_

// Errors for want of a server: one that cannot be reached, or does not answer in time. They have codes that other
// errors have, too (a peer that is gone is UNAVAILABLE), so they carry a mark, which copies of the status keep.
// RankFailed tells the coordinator, which then starts the group again for as long as it takes. Pure.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// UNAVAILABLE and DEADLINE_EXCEEDED with the mark; all else, and an empty `address` (host:port), as they are.
absl::Status ForWantOf(absl::string_view address, absl::Status status);

// Marks UNAVAILABLE that a server has said itself, so that it can be reached: a round has no quorum, or another stream
// of this rank came first. All else stays as it is.
absl::Status SaidByServer(absl::Status status);
bool IsSaidByServer(const absl::Status& status);

// The server of a marked error, host:port; else "".
std::string WantedServer(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_WANT_OF_SERVER_H_
