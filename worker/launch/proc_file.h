#ifndef HOOKE_WORKER_LAUNCH_PROC_FILE_H_
#define HOOKE_WORKER_LAUNCH_PROC_FILE_H_

// Reads a process's files under /proc. A process may end at any moment; then even reads of an open file fail with
// ESRCH, which C++ streams turn into an exception. Here every such failure gives the same result: nullopt.

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

// Returns the content of /proc/PID/`name` ("stat", "cmdline", ...). nullopt if the process is gone or we may not read
// the file.
std::optional<std::string> ReadProcFile(pid_t pid, absl::string_view name);

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_PROC_FILE_H_
