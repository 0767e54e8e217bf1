#ifndef HOOKE_SERVER_CLUSTER_PROFILE_KEY_H_
#define HOOKE_SERVER_CLUSTER_PROFILE_KEY_H_

// Names the profile of one rank.

#include <cstdint>
#include <string>
#include <tuple>

namespace hooke {

struct ProfileKey {
  std::string job_id;  // Must be one that the coordinator made, because it becomes a folder's name.
  uint32_t group = 0;
  uint32_t rank = 0;

  friend bool operator<(const ProfileKey& a, const ProfileKey& b) {
    return std::tie(a.job_id, a.group, a.rank) < std::tie(b.job_id, b.group, b.rank);
  }
};

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_PROFILE_KEY_H_
