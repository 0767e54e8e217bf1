#ifndef HOOKE_SERVER_DASHBOARD_ROUND_TEXT_H_
#define HOOKE_SERVER_DASHBOARD_ROUND_TEXT_H_

// Says for the web page who waits for whom in a job. Pure.

#include <string>

#include "proto/coordinator.pb.h"

namespace hooke {

// Returns how far the rounds of a job are, and which groups wait in an exchange for which others, as far as their last
// reports say: "about 21 rounds; group 0 has waited 3 s for groups 1 and 2". Returns "" unless the job
// runs, trains, and has a rule under which groups wait for one another.
std::string RoundText(const v1::JobStatus& job);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_ROUND_TEXT_H_
