#ifndef HOOKE_SERVER_PARAMETERS_SNAPSHOT_HISTORY_H_
#define HOOKE_SERVER_PARAMETERS_SNAPSHOT_HISTORY_H_

// One job's snapshots in storage: "<job id>.<version, 12 digits>.snapshot". The newest two readable ones are kept,
// so that one bad file never costs a center. Used by ParameterStore.
//
// Thread-safe, but for Write: one at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/parameters/shard.h"
#include "server/parameters/snapshot.h"
#include "server/parameters/storage.h"

namespace spdlog {
class logger;
}

namespace hooke {

class SnapshotHistory {
 public:
  struct Options {
    std::shared_ptr<Storage> storage;
    std::shared_ptr<spdlog::logger> logger;
    std::string job_id;
  };
  // `generations`: the versions that storage holds, ascending.
  SnapshotHistory(Options options, const std::vector<uint64_t>& generations);

  // Writes the next version, then removes all but it and the newest readable one before it.
  absl::Status Write(const Shard& shard, bool sealed);

  // The newest snapshot of which every byte is right. One that is not is logged with what is wrong and which one is
  // used instead, and is not looked at again. DATA_LOSS: none is. UNAVAILABLE: the disk failed to show one.
  absl::StatusOr<SnapshotReader> OpenNewest();

  // Bytes that the job's snapshots take in storage, as they were when last written or found.
  uint64_t bytes() const;

 private:
  // Looks at the file's size and remembers it; one that cannot be opened counts as empty.
  void NoteSize(uint64_t generation);
  // Opens and verifies one.
  absl::StatusOr<SnapshotReader> OpenVerified(uint64_t generation);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::vector<uint64_t> generations_ ABSL_GUARDED_BY(mutex_);  // Ascending; readable as far as known.
  std::vector<uint64_t> bad_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> bytes_ ABSL_GUARDED_BY(mutex_);  // Of each file in storage, by generation.
  uint64_t highest_ ABSL_GUARDED_BY(mutex_) = 0;                // Never used again.
};

// "fashion-1.000000000007.snapshot".
std::string SnapshotName(absl::string_view job_id, uint64_t generation);

// The versions in storage, ascending, by job. Files of other names are left alone.
absl::StatusOr<std::map<std::string, std::vector<uint64_t>>> ListSnapshots(Storage& storage);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SNAPSHOT_HISTORY_H_
