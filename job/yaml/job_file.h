#ifndef HOOKE_JOB_YAML_JOB_FILE_H_
#define HOOKE_JOB_YAML_JOB_FILE_H_

// Reads a job file (YAML, docs/job-file.md) into a v1::JobSpec with every default filled in, and remembers the lines of
// its keys. `hooke submit` calls this before anything is sent, and the coordinator for a job from its web page.
//
// A wrong file gives INVALID_ARGUMENT with one line for each of the first ten faults, in the order of the file:
//   FILE:LINE: KEY: the fault; what is allowed (did you mean "averaging"?)
// A text that is not YAML gives FILE:LINE:COLUMN: and the fault. Text from the file is escaped, so that it cannot steer
// the terminal.
//
// Whether the data exist is not checked: they are on the ranks' nodes. A JobFolder reads the other files that the job
// file names, so the code of this folder does no I/O.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/job_refusal.h"
#include "proto/job.pb.h"

namespace hooke {

constexpr size_t kJobFileBytesMax = 1 << 20;
struct JobFile {
  std::string name;  // The file's name in messages.
  v1::JobSpec spec;
  // Line of each key and section in the file, counted from 1. Keyed by path.
  std::map<std::string, int> lines;
};

// Where a job file lies. Errors become problems of the key; their messages follow its name.
class JobFolder {
 public:
  virtual ~JobFolder() = default;
  // The absolute folder from which relative paths start. Empty: the job comes from no folder, so they are refused.
  virtual std::string path() const = 0;
  // Returns the JSON in a file, such as a tuning; the ranks check its rules. `path` is absolute.
  virtual absl::StatusOr<std::string> ReadJson(const std::string& path) = 0;
  // Reads the files of the key `files`. It is called only if nothing else is wrong. The paths have passed
  // CheckFilePath, or are ".".
  virtual absl::StatusOr<v1::FileSet> Collect(const std::vector<std::string>& paths) = 0;
};

// Reads a job file's text. `file` is the name in messages.
absl::StatusOr<JobFile> ParseJobText(absl::string_view text, absl::string_view file, JobFolder& folder);

// Returns the coordinator's refusal of the file's job in the form of a wrong file's message. If the file does not give
// the key of a problem, the line is that of the section around the key, or 1.
std::string RefusalText(const JobFile& file, const Refusal& refusal);

}  // namespace hooke

#endif  // HOOKE_JOB_YAML_JOB_FILE_H_
