#ifndef HOOKE_CLIENT_JOB_FILE_JOB_FILE_H_
#define HOOKE_CLIENT_JOB_FILE_JOB_FILE_H_

// Reads a job file (YAML, docs/job-file.md) into a v1::JobSpec with every default filled in, and remembers the lines of
// its keys. `hooke submit` calls this before anything is sent.
//
// A wrong file gives INVALID_ARGUMENT with one line for each of the first ten faults, in the order of the file:
//   FILE:LINE: KEY: the fault; what is allowed (did you mean "averaging"?)
// A text that is not YAML gives FILE:LINE:COLUMN: and the fault. Text from the file is escaped, so that it cannot steer
// the terminal. A file that cannot be read gives NOT_FOUND or FAILED_PRECONDITION.
//
// Whether the data exist is not checked: they are on the ranks' nodes. A tuning file is read here; the ranks check its
// rules. The files of the key `files` are read here, too, if nothing else is wrong.

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/files/collect_files.h"
#include "job/job_refusal.h"
#include "proto/job.pb.h"

namespace hooke {

constexpr size_t kJobFileBytesMax = 1 << 20;
struct JobFile {
  std::string name;  // The file's name in messages.
  v1::JobSpec spec;
  // Line of each key and section in the file, counted from 1. Keyed by path.
  std::map<std::string, int> lines;
  // The files to upload before the job is submitted. `spec` names them if it has command.files.
  CollectedFiles files = {};
};

// Reads a file. Relative paths in it are relative to the file's folder.
absl::StatusOr<JobFile> ReadJobFile(const std::string& path);

// Reads a job file's text. `file` is the name in messages; `folder` is the absolute folder from which relative paths
// start.
absl::StatusOr<JobFile> ParseJobFile(absl::string_view text, absl::string_view file, absl::string_view folder);

// Returns the coordinator's refusal of the file's job in the form of a wrong file's message. If the file does not give
// the key of a problem, the line is that of the section around the key, or 1.
std::string RefusalText(const JobFile& file, const Refusal& refusal);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_JOB_FILE_H_
