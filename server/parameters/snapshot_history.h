#ifndef HOOKE_SERVER_PARAMETERS_SNAPSHOT_HISTORY_H_
#define HOOKE_SERVER_PARAMETERS_SNAPSHOT_HISTORY_H_

// One job's snapshots in storage, in files "<job id>.<number, 12 digits>.snapshot". The two newest readable ones
// are kept, so that one bad file never costs a center.
//
// Thread-safe, except that only one Write may run at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
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
  // `numbers` are those that storage holds, ascending.
  SnapshotHistory(Options options, const std::vector<uint64_t>& numbers);

  // Writes the file of the next number, then removes all but it and the newest readable one before it.
  absl::Status Write(const Shard& shard, bool sealed);

  // Opens the newest snapshot whose every byte is intact. A damaged one is logged, with what is wrong and what is used
  // instead. It is not tried again, unless no other is left. DATA_LOSS: all are damaged. UNAVAILABLE: the disk could
  // not read one. CANCELLED: `cancelled`, which is asked before each block, returned true.
  absl::StatusOr<SnapshotReader> OpenNewest(absl::FunctionRef<bool()> cancelled = NeverCancelled);

  // Does what OpenNewest does, but verifies only the file's length and its sections before the first block. So this
  // costs the same for a center of any size.
  absl::StatusOr<SnapshotReader> OpenNewestUnverified();

  // Removes all of the job's snapshots. The newest is removed last, so that it is still there if this stops half-way.
  absl::Status RemoveAll();

  // Returns the bytes that the job's snapshots take in storage, as they were when last written or found.
  uint64_t bytes() const;

 private:
  // Stores the file's size in `bytes_`. A file that cannot be opened counts as empty.
  void NoteSize(uint64_t number);
  static bool NeverCancelled() { return false; }
  // Opens the newest snapshot that `open` accepts. Logs the others.
  absl::StatusOr<SnapshotReader> OpenFirst(absl::FunctionRef<absl::StatusOr<SnapshotReader>(uint64_t)> open);
  // Opens a snapshot of this job.
  absl::StatusOr<SnapshotReader> Open(uint64_t number);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::vector<uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);  // Ascending; readable as far as known.
  std::vector<uint64_t> bad_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> bytes_ ABSL_GUARDED_BY(mutex_);  // Size of each file, by number.
  uint64_t highest_ ABSL_GUARDED_BY(mutex_) = 0;                // The highest number so far.
};

// Returns the file's name, such as "fashion-1.000000000007.snapshot".
std::string SnapshotName(absl::string_view job_id, uint64_t number);

// Returns the numbers in storage, ascending, by job id. Files with other names are ignored.
absl::StatusOr<std::map<std::string, std::vector<uint64_t>>> ListSnapshots(Storage& storage);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SNAPSHOT_HISTORY_H_
