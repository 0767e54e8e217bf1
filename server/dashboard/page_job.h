#ifndef HOOKE_SERVER_DASHBOARD_PAGE_JOB_H_
#define HOOKE_SERVER_DASHBOARD_PAGE_JOB_H_

// A job file that came from the web page: the same reader as `hooke submit` has, without a folder. Pure: it reads no
// file of this machine, whatever the job file names.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/yaml/job_file.h"

namespace hooke {

// Reads the text. `name` is the file's name for messages; empty: "job.yaml". INVALID_ARGUMENT has the message of
// ParseJobText: a line for each fault. Relative paths, `files` and collectives.tuning are faults, because they name
// files on the disk of whoever has the page open.
absl::StatusOr<JobFile> ReadPageJob(absl::string_view text, absl::string_view name);

// Returns the coordinator's answer to the file's job as a refusal for people: with lines, if it names keys.
absl::Status PageRefusal(const JobFile& file, const absl::Status& status);

}  // namespace hooke

#endif  // HOOKE_SERVER_DASHBOARD_PAGE_JOB_H_
