#include "worker/daemon/cut_off.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// The part of the lease that is left for the group's end: the run looks a few times a second, and the processes have to
// be killed.
constexpr int kLeasePerMargin = 10;

}  // namespace

void MissedServers::Take(uint32_t rank, const v1::RankProgress& progress) {
  if (progress.servers() == 0) return;
  misses_all_[rank] = static_cast<uint32_t>(progress.absent_servers_size()) >= progress.servers();
}

bool MissedServers::All() const {
  return !misses_all_.empty() &&
         std::all_of(misses_all_.begin(), misses_all_.end(), [](const auto& rank) { return rank.second; });
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
