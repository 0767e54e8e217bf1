#ifndef HOOKE_SERVER_JOURNAL_JOB_LOG_H_
#define HOOKE_SERVER_JOURNAL_JOB_LOG_H_

// The logs of jobs. Each is a text file that only grows; its lines are "<RFC 3339 time> <source> <text>\n". Its size is
// bounded. The line that reaches the bound is followed by one that says so. From then on only the coordinator's own
// lines are kept, for instance that the job has ended, up to a second bound.
//
// Append and Remove must be called by one thread at a time. Any thread may call Read at any time; it sees whole lines.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hooke {

struct JobLogOptions {
  std::string folder;                          // Open creates it.
  uint64_t bytes_max = uint64_t{64} << 20;     // The bound of one job's log.
  uint64_t own_bytes_max = uint64_t{1} << 20;  // Further bytes for the coordinator's own lines.
};

struct LogText {
  std::string text;  // Whole lines; empty: nothing more is there now.
  uint64_t next_offset = 0;
};

class JobLog {
 public:
  static constexpr size_t kLineBytesMax = 8192;  // Longer lines are cut.

  struct Line {
    Line(std::string text_in, bool ours_in = false) : text(std::move(text_in)), ours(ours_in) {}  // NOLINT: implicit
    Line(const char* text_in) : text(text_in) {}                                                  // NOLINT: implicit
    std::string text;
    bool ours = false;  // True: the line is the coordinator's own.
  };

  // Opens the logs in `options.folder`. INTERNAL: the folder cannot be created.
  static absl::StatusOr<JobLog> Open(JobLogOptions options);

  // Appends lines to the job's log. `job_id` must be one that the coordinator made, because it becomes a file's name.
  // Line ends inside a line become spaces. Lines past their bound are dropped without an error. RESOURCE_EXHAUSTED,
  // INTERNAL: the file cannot be written; the message has its name and the cause.
  absl::Status Append(absl::string_view job_id, absl::Span<const Line> lines);

  // Returns whole lines from byte `offset` on. They have about `bytes_max` bytes at most, but at least one line is
  // returned if there is one. A job without a log reads as empty. OUT_OF_RANGE: the log is shorter than `offset`.
  // INTERNAL: the file cannot be read.
  absl::StatusOr<LogText> Read(absl::string_view job_id, uint64_t offset, uint64_t bytes_max) const;

  // Returns the whole lines among about the last `bytes_max` bytes, or the whole log if it is shorter. INTERNAL: the
  // file cannot be read.
  absl::StatusOr<LogText> ReadEnd(absl::string_view job_id, uint64_t bytes_max) const;

  // Removes the job's log, if it has one. INTERNAL: it cannot be removed.
  absl::Status Remove(absl::string_view job_id);

  // Returns the highest number (JobNumberOf) of a job that has a log here, 0 if there is none. So numbers that were
  // given before the job store was moved away are still known. INTERNAL: the folder cannot be read.
  absl::StatusOr<uint64_t> HighestNumber() const;

 private:
  explicit JobLog(JobLogOptions options) : options_(std::move(options)) {}
  std::string PathOf(absl::string_view job_id) const;

  JobLogOptions options_;
};

// Returns "<RFC 3339 time, UTC, milliseconds> <source> <text>".
std::string LogLine(absl::Time now, absl::string_view source_and_text);

}  // namespace hooke

#endif  // HOOKE_SERVER_JOURNAL_JOB_LOG_H_
