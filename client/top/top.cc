#include "client/top/top.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/status/statusor.h"

namespace hooke {
namespace {

// True for errors of a coordinator that is busy, stops or starts. Any other error is its answer.
bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsCancelled(status) ||
         absl::IsAborted(status) || absl::IsInternal(status) || absl::IsUnknown(status);
}

absl::StatusOr<ClusterLook> Look(CoordinatorClient& coordinator, absl::Time now) {
  ClusterLook look;
  look.at = now;
  absl::StatusOr<v1::ListNodesResponse> nodes = coordinator.ListNodes();
  if (!nodes.ok()) return nodes.status();
  look.nodes = *std::move(nodes);
  absl::StatusOr<v1::ListJobsResponse> jobs = coordinator.ListJobs();
  if (!jobs.ok()) return jobs.status();
  look.jobs = *std::move(jobs);
  return look;
}

}  // namespace

absl::Status RunTop(CoordinatorClient& coordinator, Interrupts& interrupts, const TopOptions& options,
                    const std::function<void(const TopState& state, absl::Time now)>& show) {
  TopState state;
  state.address = coordinator.address();
  std::deque<ClusterLook> seen;  // Older looks, for rates. The oldest one is just beyond the window.
  uint64_t shown = 0;
  for (bool first = true;; first = false) {
    const absl::Time begun = options.clock();
    absl::StatusOr<ClusterLook> look = Look(coordinator, begun);
    absl::Status looked = look.status();
    if (look.ok()) {
      if (!first) seen.push_back(std::move(state.look));
      while (seen.size() > 1 && seen[1].at <= begun - options.window) seen.pop_front();
      state.look = *std::move(look);
      state.before = seen.empty() ? std::nullopt : std::optional<ClusterLook>(seen.front());
      state.away_since = absl::InfiniteFuture();
      state.trouble.clear();
    } else if (first || !IsPassing(looked)) {
      return looked;
    } else {
      if (!state.away()) state.away_since = state.look.at;
      state.trouble = std::string(looked.message());
    }
    if (!first || !options.rates_first) {
      show(state, options.clock());
      if (options.count > 0 && ++shown == options.count) return looked;
    }
    const absl::Duration pause = options.interval - (options.clock() - begun);
    if (interrupts.WaitFor(std::max(absl::ZeroDuration(), pause)).has_value()) {
      return absl::CancelledError("interrupted");
    }
  }
}

}  // namespace hooke
