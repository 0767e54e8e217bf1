#ifndef HOOKE_SERVER_DASHBOARD_JOB_EVENTS_H_
#define HOOKE_SERVER_DASHBOARD_JOB_EVENTS_H_

// Lists the events of a job: starts and ends of its groups, and notices. They are read from the lines that the
// coordinator has written to the job's log, which survives restarts of the coordinator. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hooke {

struct JobEvent {
  int64_t unix_ms = 0;
  const char* kind = "";          // "start", "death", "end" of a group or of the job; "notice".
  std::optional<uint32_t> group;  // The group that it is about.
  std::string text;
};

// Returns the events in whole lines of a log. Ignores lines of ranks and of workers. Also ignores lines of the
// coordinator that only say that a start goes well.
std::vector<JobEvent> EventsIn(absl::string_view log);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_JOB_EVENTS_H_
