#ifndef HOOKE_CLIENT_TEXT_TIME_TEXT_H_
#define HOOKE_CLIENT_TEXT_TIME_TEXT_H_

// Points of time as text for people. Only this file chooses their format. Programs get RFC 3339 in UTC (logs) or
// milliseconds since 1970 (JSON). Pure.

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

// Shows `time` in `zone`: "14:03:05" on the day of `now`, "2026-11-22 14:03:05" on any other day.
std::string TimeText(absl::Time time, absl::Time now, absl::TimeZone zone);

// Replaces each RFC 3339 time in `text` by its TimeText. Daemons and ranks write such times, like
// "2026-11-23T04:54:42Z".
std::string WithTimeTexts(absl::string_view text, absl::Time now, absl::TimeZone zone);

// Returns the milliseconds of a server's answers with three digits or so: "0.43 ms", "34.6 ms", "1234 ms". Servers do
// not tell apart what is below 0.1 ms: "<0.1 ms".
std::string MillisecondsText(double milliseconds);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TEXT_TIME_TEXT_H_
