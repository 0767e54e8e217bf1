#ifndef HOOKE_SERVER_JOURNAL_PROFILE_STORE_H_
#define HOOKE_SERVER_JOURNAL_PROFILE_STORE_H_

// Stores the last profile of each rank of each job. A job has a folder, and a rank a file "<group>-<rank>" in it
// (profile_file.h). The size is bounded: ranks beyond a job's bound are not kept. If all jobs together take too much,
// the profiles of those submitted first are removed. A rank whose profile is being written when the process is killed
// has none until the next one comes. A crash of the machine may lose those of the last seconds.
//
// Put and Remove must be called by one thread at a time. Any thread may call List and Read at any time; they see whole
// profiles.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/worker.pb.h"
#include "server/cluster/profile_key.h"

namespace hooke {

struct ProfileStoreOptions {
  std::string folder;                            // Open creates it.
  uint64_t job_bytes_max = uint64_t{64} << 20;   // Limit for one job.
  uint64_t all_bytes_max = uint64_t{256} << 20;  // Limit for all jobs together; at least job_bytes_max.
};

class ProfileStore {
 public:
  // Opens the profiles in `options.folder`. INTERNAL: the folder cannot be created or read.
  static absl::StatusOr<ProfileStore> Open(ProfileStoreOptions options);

  // Replaces the rank's profile by `profile`, a serialized v1::RankProfile. RESOURCE_EXHAUSTED: the job is at its
  // bound, or the disk is full. INTERNAL: the file cannot be written; the message has its name and the cause.
  absl::Status Put(const ProfileKey& key, absl::string_view profile);

  // Removes the job's profiles, if it has any. INTERNAL: they cannot be removed.
  absl::Status Remove(const std::string& job_id);

  // Returns the kept profiles of a job, ordered by group and rank.
  std::vector<ProfileKey> List(const std::string& job_id) const;
  // Returns a profile. NOT_FOUND: there is no such profile, or its write was cut short. DATA_LOSS: its file is damaged.
  absl::StatusOr<v1::RankProfile> Read(const ProfileKey& key) const;

 private:
  struct File {
    uint64_t bytes = 0;
    bool is_ours =
        false;  // This store has created it, so it may overwrite it. An earlier version wrote another format.
  };
  struct Job {
    std::string id;
    std::map<std::string, File> files;  // By name.
    uint64_t bytes = 0;
  };

  explicit ProfileStore(ProfileStoreOptions options) : options_(std::move(options)) {}
  absl::Status LoadSizes();
  absl::Status Write(const ProfileKey& key, absl::string_view profile, File& file);
  // Removes profiles until all jobs together are within the bound. It removes those of the jobs submitted first, but
  // none of job `for_number`.
  void MakeRoom(uint64_t for_number);
  std::string FolderOf(const std::string& job_id) const;

  ProfileStoreOptions options_;
  // Only Open, Put and Remove use these, so they need no lock.
  std::map<uint64_t, Job> jobs_;  // By number.
  uint64_t bytes_ = 0;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_JOURNAL_PROFILE_STORE_H_
