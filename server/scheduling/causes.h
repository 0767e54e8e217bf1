#ifndef HOOKE_SERVER_SCHEDULING_CAUSES_H_
#define HOOKE_SERVER_SCHEDULING_CAUSES_H_

// Did two starts of a group end in the same way? Pure.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hooke {

// Returns a text that is equal for ends in the same way: the status code, and the message without what differs from
// start to start. `hosts` become "HOST", and so does each HOST:PORT. Numbers become "#", but those after "signal",
// "status" and "code" stay. For example, "rank 1 (pid 4711): exit status 3" of ABORTED becomes
// "ABORTED: rank # (pid #): exit status 3". `hosts` are names and addresses of the group's workers.
std::string CauseOf(absl::StatusCode code, absl::string_view message, const std::vector<std::string>& hosts);

}  // namespace hooke

#endif  // HOOKE_SERVER_SCHEDULING_CAUSES_H_
