#ifndef HOOKE_CLIENT_TOP_TOP_VIEW_H_
#define HOOKE_CLIENT_TOP_TOP_VIEW_H_

// The text of `hooke top`. Pure.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/top/top_rates.h"

namespace hooke {

struct TopState {
  std::string address;                // The coordinator's address.
  std::optional<ClusterLook> before;  // An earlier look, for rates.
  ClusterLook look;                   // The last one that succeeded.
  // Since when the coordinator does not answer. Infinite: it answers.
  absl::Time away_since = absl::InfiniteFuture();
  std::string trouble;  // Why the coordinator does not answer.

  bool away() const { return away_since != absl::InfiniteFuture(); }
};

struct TopViewOptions {
  int width = 0;   // Columns of the terminal; a longer line is cut and ends in "…". 0: no line is cut.
  int height = 0;  // Lines of the terminal, one of which stays free for the cursor. 0: all lines are shown.
  absl::TimeZone zone = absl::LocalTimeZone();
};

// Returns the picture: a line about all, then tables of jobs, of the groups of jobs that run, of workers, and of
// servers. Jobs that have ended are the last rows of the first table. If there are more rows than lines, each table
// gets a share, and says how many rows are left out. While the coordinator is away, the first line says so.
std::vector<std::string> RenderTop(const TopState& state, absl::Time now, const TopViewOptions& options);

// Returns the line of RenderTop about a coordinator that is away.
std::string TopAwayText(const TopState& state, absl::Time now, absl::TimeZone zone);

// Returns {"unix_ms", "jobs", "nodes", "rates": [{"job_id", "group", "steps_per_s", "exchanges_per_s"}]}, with jobs and
// nodes as `hooke jobs` and `hooke nodes` have them.
nlohmann::ordered_json TopToJson(const TopState& state);

// Divides `room` lines among the tables, and returns the rows of each. Table i wants wanted[i] rows. A table with rows
// takes two more lines: an empty one and its header. Each table gets what it wants, or else an equal share of what the
// others leave.
std::vector<size_t> ShareRows(const std::vector<size_t>& wanted, size_t room);

}  // namespace hooke

#endif  // HOOKE_CLIENT_TOP_TOP_VIEW_H_
