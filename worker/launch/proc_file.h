#ifndef HOOKE_WORKER_LAUNCH_PROC_FILE_H_
#define HOOKE_WORKER_LAUNCH_PROC_FILE_H_

// What the kernel tells of a process. Its files are there one moment and fail with ESRCH the next, also between two
// reads of an open one, which C++ streams turn into an exception; here all of that is one answer.

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// All of /proc/PID/`name` ("stat", "cmdline", ...); nothing when the process is gone, or the file is not ours to read.
std::optional<std::string> ReadProcFile(pid_t pid, absl::string_view name);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_PROC_FILE_H_
