#ifndef HOOKE_CLIENT_WATCH_WATCH_VIEW_H_
#define HOOKE_CLIENT_WATCH_WATCH_VIEW_H_

// What `hooke watch` shows. Pure: a job's status in, lines of text out. `now` is the coordinator's clock.

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
  int width = 80;   // Columns of the terminal; a line that would be wider is cut, and ends in "…".
  int height = 24;  // Lines of the terminal; there are never more.
  absl::TimeZone zone = absl::LocalTimeZone();
};

// The whole picture, for a terminal where it is drawn again in place.
std::vector<std::string> RenderWatch(const v1::JobStatus& job, absl::Time now, const WatchViewOptions& options);

// "coordinator away since 14:03:05", and what follows from it.
std::string AwayText(absl::Time since, absl::Time now, absl::TimeZone zone);

// The picture while the coordinator is away: first since when, then what was known then.
std::vector<std::string> RenderAway(const v1::JobStatus& job, absl::Time since, absl::Time now,
                                    const WatchViewOptions& options);

struct WatchLogOptions {
  absl::Duration interval = absl::Seconds(5);  // Least time between two lines about the progress of one group.
  absl::TimeZone zone = absl::LocalTimeZone();
};

// The same as plain lines, for a file or a pipe: each tells something new, and begins with the time. Remembers what it
// has told.
class WatchLog {
 public:
  explicit WatchLog(WatchLogOptions options) : options_(options) {}

  std::vector<std::string> Lines(const v1::JobStatus& job, absl::Time now);
  // A line about something else, in the same form.
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
  std::map<std::pair<uint32_t, int>, Told> groups_;  // By index and task.
  std::set<std::pair<int64_t, std::string>> notices_;
  std::map<std::string, std::string> silences_;  // Who, by key; empty: a notice told it.
};

}  // namespace hooke

#endif  // HOOKE_CLIENT_WATCH_WATCH_VIEW_H_
