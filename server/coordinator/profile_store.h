#ifndef HOOKE_SERVER_COORDINATOR_PROFILE_STORE_H_
#define HOOKE_SERVER_COORDINATOR_PROFILE_STORE_H_

// The last profile of each rank of each job: a folder for a job, in it a file for a rank, "<group>-<rank>". Bounded:
// ranks beyond a job's bound are not kept, and where all jobs together have too much, those submitted first go. A
// crash of the machine may lose the last ones.
//
// Put is called by one thread at a time (the Coordinator sees to it), the others by any, also meanwhile: they see whole
// profiles.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/worker.pb.h"

namespace hooke {

struct ProfileStoreOptions {
  std::string folder;                            // Made by Open.
  uint64_t job_bytes_max = uint64_t{64} << 20;   // Of one job.
  uint64_t all_bytes_max = uint64_t{256} << 20;  // Of all; at least job_bytes_max.
};

struct ProfileKey {
  std::string job_id;  // One that the coordinator made: it becomes a folder's name.
  uint32_t group = 0;
  uint32_t rank = 0;

  friend bool operator<(const ProfileKey& a, const ProfileKey& b) {
    return std::tie(a.job_id, a.group, a.rank) < std::tie(b.job_id, b.group, b.rank);
  }
};

class ProfileStore {
 public:
  // INTERNAL: the folder cannot be made or read.
  static absl::StatusOr<ProfileStore> Open(ProfileStoreOptions options);

  // Replaces the rank's profile. RESOURCE_EXHAUSTED: the job has too many, or the disk is full; INTERNAL: the file
  // cannot be written, with its name and why.
  absl::Status Put(const ProfileKey& key, const v1::RankProfile& profile);

  // Those of a job that are there, by group and rank.
  std::vector<ProfileKey> List(const std::string& job_id) const;
  // NOT_FOUND, DATA_LOSS: the file is not what was written.
  absl::StatusOr<v1::RankProfile> Read(const ProfileKey& key) const;

 private:
  struct Job {
    std::string id;
    std::map<std::string, uint64_t> files;  // Name -> bytes.
    uint64_t bytes = 0;
  };

  explicit ProfileStore(ProfileStoreOptions options) : options_(std::move(options)) {}
  absl::Status LoadSizes();
  void MakeRoom(uint64_t for_number);  // At the cost of other jobs.
  std::string FolderOf(const std::string& job_id) const;

  ProfileStoreOptions options_;
  // Of Put alone.
  std::map<uint64_t, Job> jobs_;  // By number.
  uint64_t bytes_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_COORDINATOR_PROFILE_STORE_H_
