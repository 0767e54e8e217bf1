#ifndef HOOKE_WORKER_REPORT_WANT_OF_SERVER_H_
#define HOOKE_WORKER_REPORT_WANT_OF_SERVER_H_

// Marks errors that a missing server causes: it cannot be reached or does not answer in time. Other errors may have the
// same codes: a peer that is gone is UNAVAILABLE, too. So errors for want of a server carry a mark, which copies of the
// status keep. RankFailed passes the server on to the coordinator. The coordinator then starts the group again for as
// long as it takes. Pure.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Marks UNAVAILABLE and DEADLINE_EXCEEDED with the server's address (host:port). Other codes stay unmarked, and so do
// all errors if `address` is empty.
absl::Status ForWantOf(absl::string_view address, absl::Status status);

// Marks an UNAVAILABLE error that a server itself has sent. The server can be reached, but a round has no quorum, or
// another stream of this rank came first. Other codes stay unmarked.
absl::Status SaidByServer(absl::Status status);
bool IsSaidByServer(const absl::Status& status);

// The address of the server that an error is marked with (host:port); "" if it has no mark.
std::string WantedServer(const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_WANT_OF_SERVER_H_
