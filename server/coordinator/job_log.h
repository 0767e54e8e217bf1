#ifndef HOOKE_SERVER_COORDINATOR_JOB_LOG_H_
#define HOOKE_SERVER_COORDINATOR_JOB_LOG_H_

// Each job's log: one text file that only grows, "<RFC 3339 time> <source> <text>\n" a line. Bounded: the line that
// would be the first beyond the bound is followed by a last one saying that the log was cut.
//
// Append and Remove are called by one thread at a time (the Coordinator sees to it); Read by any, also meanwhile: it
// sees whole lines.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

struct JobLogOptions {
  std::string folder;                       // Made by Open.
  uint64_t bytes_max = uint64_t{64} << 20;  // Of one job.
};

struct LogText {
  std::string text;  // Whole lines; empty: nothing more is there now.
  uint64_t next_offset = 0;
};

class JobLog {
 public:
  static constexpr size_t kLineBytesMax = 8192;  // Longer lines are cut.

  // INTERNAL: the folder cannot be made.
  static absl::StatusOr<JobLog> Open(JobLogOptions options);

  // `job_id` is one that the coordinator made: it becomes a file's name. Line ends inside a line become spaces. Past
  // the bound lines are dropped, with OK. RESOURCE_EXHAUSTED, INTERNAL: the file cannot be written, with its name and
  // why.
  absl::Status Append(absl::string_view job_id, absl::Span<const std::string> lines);

  // The whole lines from byte `offset` on, at most about `bytes_max` bytes of them (at least one line when one is
  // there). A job without a log reads as empty. OUT_OF_RANGE: the log is shorter than `offset`.
  absl::StatusOr<LogText> Read(absl::string_view job_id, uint64_t offset, uint64_t bytes_max) const;

  // Removes the job's log, if it has one. INTERNAL: it cannot be.
  absl::Status Remove(absl::string_view job_id);

  // The highest number at the end of a job id that has a log here; 0: none. Logs outlive a job store that was moved
  // away. INTERNAL: the folder cannot be read.
  absl::StatusOr<uint64_t> HighestNumber() const;

 private:
  explicit JobLog(JobLogOptions options) : options_(std::move(options)) {}
  std::string PathOf(absl::string_view job_id) const;

  JobLogOptions options_;
};

// "<RFC 3339 time, UTC, milliseconds> <source> <text>".
std::string LogLine(absl::Time now, absl::string_view source_and_text);

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_JOB_LOG_H_
