#ifndef HOOKE_WIRE_UTC_TIME_H_
#define HOOKE_WIRE_UTC_TIME_H_

// The form of points of time in the texts of daemons and ranks: RFC 3339 in UTC, whole seconds. The `hooke` command
// shows them in the reader's time zone.

#include <string>

#include "absl/time/time.h"

namespace hooke {

// Returns a time as text, such as "2026-11-23T04:54:42Z".
inline std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace hooke

#endif  // HOOKE_WIRE_UTC_TIME_H_
