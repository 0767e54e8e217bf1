#ifndef HOOKE_CLIENT_TEXT_TIME_TEXT_H_
#define HOOKE_CLIENT_TEXT_TIME_TEXT_H_

// Points of time as people read them; the only place that chooses their format. Programs read RFC 3339 in UTC (logs) or
// milliseconds since 1970 (JSON). Pure.

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

// `time` in `zone`: "14:03:05" on the day of `now`, "2026-11-22 14:03:05" on any other.
std::string TimeText(absl::Time time, absl::Time now, absl::TimeZone zone);

// `text` with each RFC 3339 time in it, as daemons and ranks write them ("2026-11-23T04:54:42Z"), replaced by its
// TimeText. All else stays as it is.
std::string WithTimeTexts(absl::string_view text, absl::Time now, absl::TimeZone zone);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_TIME_TEXT_H_
