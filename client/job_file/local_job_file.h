#ifndef HOOKE_CLIENT_JOB_FILE_LOCAL_JOB_FILE_H_
#define HOOKE_CLIENT_JOB_FILE_LOCAL_JOB_FILE_H_

// Reads a job file of this machine, and the files that it names: job/yaml/job_file.h with a real folder.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/files/collect_files.h"
#include "job/yaml/job_file.h"

namespace hooke {

struct LocalJobFile : JobFile {
  // The files to upload before the job is submitted. `spec` names them if it has command.files.
  CollectedFiles files = {};
};

// Reads a file. Relative paths in it are relative to the file's folder. Errors are those of ParseJobText. A file that
// cannot be read gives NOT_FOUND or FAILED_PRECONDITION.
absl::StatusOr<LocalJobFile> ReadJobFile(const std::string& path);

// Reads a job file's text. `file` is the name in messages; `folder` is the absolute folder from which relative paths
// start.
absl::StatusOr<LocalJobFile> ParseJobFile(absl::string_view text, absl::string_view file, absl::string_view folder);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_LOCAL_JOB_FILE_H_
