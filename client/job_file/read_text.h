#ifndef HOOKE_CLIENT_JOB_FILE_READ_TEXT_H_
#define HOOKE_CLIENT_JOB_FILE_READ_TEXT_H_

// Reads a job file, and the files with JSON that it names, as texts of a bounded size.

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace hooke {

// Reads the start of a file. It reads at most `bytes_max` + 1 bytes, so that the caller notices a longer file.
// FAILED_PRECONDITION: the file cannot be read. The message does not name the file; the caller puts the name in front.
absl::StatusOr<std::string> ReadStart(const std::string& path, size_t bytes_max);

// Reads a file with JSON. FAILED_PRECONDITION: it cannot be read. INVALID_ARGUMENT: it is too large, or not JSON. The
// message names the file.
absl::StatusOr<std::string> ReadJsonFile(const std::string& path);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_READ_TEXT_H_
