#include "worker/daemon/cut_off.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// The part of the lease that is left for the group's end: the run looks a few times a second, and the processes have to
// be killed.
constexpr int kLeasePerMargin = 10;

}  // namespace

void MissedServers::Take(uint32_t rank, const v1::RankProgress& progress) {
  if (progress.absent_servers().empty()) {
    by_rank_.erase(rank);
    return;
  }
  std::set<std::string>& missed = by_rank_[rank];
  missed.clear();
  for (const v1::AbsentServer& server : progress.absent_servers()) missed.insert(server.address());
}

bool MissedServers::All() const {
  if (servers_.empty()) return false;
  return std::all_of(servers_.begin(), servers_.end(), [this](const std::string& server) {
    return std::any_of(by_rank_.begin(), by_rank_.end(),
                       [&server](const auto& missed) { return missed.second.count(server) > 0; });
  });
}

absl::Status WhyCutOff(const CoordinatorContact& contact, bool misses_all, absl::Time now) {
  if (!misses_all || contact.lease <= absl::ZeroDuration()) return absl::OkStatus();
  const absl::Duration silence = now - contact.heard;
  if (silence < contact.lease - contact.lease / kLeasePerMargin) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("cut off: the coordinator has not answered this worker for ",
                   absl::FormatDuration(absl::Trunc(silence, absl::Milliseconds(100))),
                   ", and the group reaches none of its servers; it ends, because it may start elsewhere now"));
}

}  // namespace hooke
