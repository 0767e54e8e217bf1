#ifndef HOOKE_CLOCKS_PROCESS_AGE_H_
#define HOOKE_CLOCKS_PROCESS_AGE_H_

// How long this process has run, from before its libraries were loaded.

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hooke {

// Returns the age of this process, to 10 ms; zero if the kernel does not say. Any thread may call it.
absl::Duration ProcessAge();

// Returns the time from the machine's start to the process's start, from the text of /proc/PID/stat; nullopt if it is
// not such a text.
std::optional<absl::Duration> StartIn(absl::string_view stat, int64_t ticks_per_second);

}  // namespace hooke

#endif  // HOOKE_CLOCKS_PROCESS_AGE_H_
