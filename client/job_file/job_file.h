#ifndef HOOKE_CLIENT_JOB_FILE_JOB_FILE_H_
#define HOOKE_CLIENT_JOB_FILE_JOB_FILE_H_

// A job file (YAML, docs/job-file.md) as a v1::JobSpec with every default filled in, and where its keys are. Called by
// `hooke submit` before anything is sent.
//
// A file that is wrong gives INVALID_ARGUMENT with one line for each of the first ten things that are wrong, in the
// order of the file:
//   FILE:LINE: KEY: what is wrong; what is allowed (did you mean "averaging"?)
// and, for a text that is not YAML, FILE:LINE:COLUMN: what is wrong. Whatever the file says is escaped there, so that
// it cannot steer the terminal. A file that cannot be read gives NOT_FOUND or FAILED_PRECONDITION. Whether the data
// exist is not looked at: the ranks' nodes have them. A tuning is read here; the ranks check the rules in it.

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/job_refusal.h"
#include "proto/job.pb.h"

namespace hooke {

constexpr size_t kJobFileBytesMax = 1 << 20;
struct JobFile {
  std::string name;  // What messages call the file.
  v1::JobSpec spec;
  std::map<std::string, int> lines;  // Of the keys and sections that it has, by path, counted from 1.
};

// Paths in the file that are relative are relative to the file's folder.
absl::StatusOr<JobFile> ReadJobFile(const std::string& path);

// `file` is what messages call it, `folder` the absolute folder that relative paths start from.
absl::StatusOr<JobFile> ParseJobFile(absl::string_view text, absl::string_view file, absl::string_view folder);

// The coordinator's refusal of the file's job, in the same form. A problem of a key that the file does not give is told
// at the line of the section around it, or at line 1.
std::string RefusalText(const JobFile& file, const Refusal& refusal);

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_JOB_FILE_H_
