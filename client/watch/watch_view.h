#ifndef HOOKE_CLIENT_WATCH_WATCH_VIEW_H_
#define HOOKE_CLIENT_WATCH_WATCH_VIEW_H_

// The text of `hooke watch`: turns a job's status into lines. Pure. `now` is the coordinator's clock.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace hooke {

struct WatchViewOptions {
  int width = 80;   // Columns of the terminal; a longer line is cut and ends in "…".
  int height = 24;  // Lines of the terminal. A picture has at most so many lines, but always may have three.
  absl::TimeZone zone = absl::LocalTimeZone();
};

// Returns the whole picture, for a terminal that redraws it in place.
std::vector<std::string> RenderWatch(const v1::JobStatus& job, absl::Time now, const WatchViewOptions& options);

// Returns "coordinator away since 14:03:05", and what that means for the job.
std::string AwayText(absl::Time since, absl::Time now, absl::TimeZone zone);

// Returns the picture while the coordinator is away. The first line says since when; the last known picture follows.
std::vector<std::string> RenderAway(const v1::JobStatus& job, absl::Time since, absl::Time now,
                                    const WatchViewOptions& options);

struct WatchLogOptions {
  absl::Duration interval = absl::Seconds(5);  // The shortest time between two progress lines of one group.
  absl::TimeZone zone = absl::LocalTimeZone();
};

// The view as plain lines, for a file or a pipe. Each line begins with the time and has something new, so WatchLog
// remembers what it has written.
class WatchLog {
 public:
  explicit WatchLog(WatchLogOptions options) : options_(options) {}

  std::vector<std::string> Lines(const v1::JobStatus& job, absl::Time now);
  // Returns a line with `text`, after the time as in all lines.
  std::string Stamped(absl::Time time, absl::Time now, absl::string_view text) const;

 private:
  struct Told {
    std::string state;
    uint64_t step = 0;
    absl::Time at = absl::InfinitePast();
  };
  using LineList = std::vector<std::string>;

  void TellGroup(const v1::GroupStatus& group, absl::Time now, LineList& lines);
  void TellNotices(const v1::JobStatus& job, absl::Time now, LineList& lines);
  void TellSilences(const v1::JobStatus& job, absl::Time now, LineList& lines);

  const WatchLogOptions options_;
  std::string job_state_;
  std::map<std::pair<uint32_t, int>, Told> groups_;  // Keyed by the group's index and task.
  std::set<std::pair<int64_t, std::string>> notices_;
  // JobSilence::who of each silence, keyed by JobSilence::key. It is empty if a notice reports the silence.
  std::map<std::string, std::string> silences_;
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_WATCH_VIEW_H_
