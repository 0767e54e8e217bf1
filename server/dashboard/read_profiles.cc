#include "server/dashboard/read_profiles.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {

absl::StatusOr<std::vector<v1::ReadProfileResponse>> ReadProfiles(Coordinator& coordinator, const std::string& job_id,
                                                                  const ProfileBound& bound) {
  absl::StatusOr<std::vector<ProfileKey>> keys = coordinator.ListProfiles(job_id);
  if (!keys.ok()) return keys.status();
  std::vector<v1::ReadProfileResponse> ranks;
  size_t bytes = 0;
  for (const ProfileKey& key : *keys) {
    absl::StatusOr<v1::RankProfile> profile = coordinator.ReadProfile(key);
    if (absl::IsNotFound(profile.status())) continue;  // It was removed after ListProfiles, or cut short.
    if (!profile.ok()) return profile.status();
    bytes += profile->ByteSizeLong();
    if (bytes > bound.bytes_max) {
      return absl::ResourceExhaustedError(absl::StrCat(bound.what, " of ", keys->size(),
                                                       " ranks is too large for this page; use `", bound.instead, "`"));
    }
    v1::ReadProfileResponse& rank = ranks.emplace_back();
    rank.set_group(key.group);
    rank.set_rank(key.rank);
    *rank.mutable_profile() = *std::move(profile);
  }
  return ranks;
}

}  // namespace hooke
