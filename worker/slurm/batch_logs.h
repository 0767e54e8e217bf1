#ifndef HOOKE_WORKER_SLURM_BATCH_LOGS_H_
#define HOOKE_WORKER_SLURM_BATCH_LOGS_H_

// The logs of batch jobs, and text from them and from Slurm's programs. Such text has any bytes. It goes to people and
// into messages, and both need valid UTF-8.

#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace hooke {

constexpr size_t kErrorMax = 400;  // The most bytes of a program's or log's text in an error, before it is escaped.

// Returns the text escaped, as job/visible_text.h does it. Of a longer text, EscapedStart keeps at most the first and
// EscapedEnd at most the last `bytes_max` bytes. Both keep whole characters.
std::string EscapedStart(absl::string_view text, size_t bytes_max);
std::string EscapedEnd(absl::string_view text, size_t bytes_max);

// Returns the path of a batch job's log in the folder.
std::string BatchLogPath(const std::string& folder, const std::string& id);

// Returns the last line of the file that is not empty and begins with `start`; "" if there is none. It looks only at
// the last 64 KiB.
std::string LastLine(const std::string& path, absl::string_view start = "");

// Removes the oldest logs of batch jobs from the folder until `count` are left. A log stays if `in_use` returns true
// for the id of its batch job. Files that cannot be removed stay, too.
void KeepNewestLogs(const std::string& folder, size_t count, const std::function<bool(const std::string& id)>& in_use);

}  // namespace hooke

#endif  // HOOKE_WORKER_SLURM_BATCH_LOGS_H_
