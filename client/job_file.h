#ifndef HOOKE_CLIENT_JOB_FILE_H_
#define HOOKE_CLIENT_JOB_FILE_H_

// A job file (YAML, docs/job-file.md) as a v1::JobSpec with every default filled in. Called by `hooke submit` before
// anything is sent.
//
// A file that is wrong gives INVALID_ARGUMENT with one line for each thing that is wrong, in the order of the file:
//   FILE:LINE: KEY: what is wrong; what is allowed (did you mean "averaging"?)
// A file that cannot be read gives NOT_FOUND or FAILED_PRECONDITION. Whether the data exist is not looked at: the
// ranks' nodes have them. A tuning is read here; the ranks check the rules in it.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace hooke {

// Paths in the file that are relative are relative to the file's folder.
absl::StatusOr<v1::JobSpec> ReadJobFile(const std::string& path);

// `file` is what messages call it, `folder` the absolute folder that relative paths start from.
absl::StatusOr<v1::JobSpec> ParseJobFile(absl::string_view text, absl::string_view file, absl::string_view folder);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_H_
