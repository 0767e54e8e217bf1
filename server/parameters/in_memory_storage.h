#ifndef HOOKE_SERVER_PARAMETERS_IN_MEMORY_STORAGE_H_
#define HOOKE_SERVER_PARAMETERS_IN_MEMORY_STORAGE_H_

// A Storage in memory for tests. They can read and damage its files, and make its disk full or broken.

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/parameters/storage.h"

namespace hooke {

// Thread-safe.
class InMemoryStorage : public Storage {
 public:
  absl::StatusOr<std::unique_ptr<StorageWriter>> Create(absl::string_view name) override;
  absl::StatusOr<std::unique_ptr<StorageReader>> Open(absl::string_view name) override;
  absl::StatusOr<std::vector<std::string>> List() override;
  absl::Status Remove(absl::string_view name) override;
  std::string Describe() const override { return "memory"; }

  // Returns the bytes of a committed file; empty if there is none.
  std::string Get(absl::string_view name) const;
  // Writes a file past all checks, as a crash or a bad disk would leave it.
  void Put(absl::string_view name, std::string bytes);
  // Returns the number of bytes that were read so far, from all files.
  uint64_t bytes_read() const { return *bytes_read_; }
  // Flips one bit of a file.
  void FlipBit(absl::string_view name, uint64_t bit);
  // Cuts a file to its first `bytes` bytes.
  void Truncate(absl::string_view name, uint64_t bytes);
  // From now on only this many more bytes can be written. After that, writes fail with RESOURCE_EXHAUSTED.
  void SetFreeBytes(uint64_t bytes);
  // From now on every Commit fails with `status`. If `status` is OK, Commits succeed again.
  void FailCommits(absl::Status status);
  // From now on Open of files whose names begin with `prefix` waits, like a slow disk, until ReleaseOpens.
  void HoldOpens(std::string prefix);
  // Waits until an Open is held.
  void AwaitHeldOpen() const;
  void ReleaseOpens();

 private:
  friend class InMemoryWriter;

  mutable absl::Mutex mutex_;
  std::map<std::string, std::string, std::less<>> files_ ABSL_GUARDED_BY(mutex_);
  absl::Time written_ ABSL_GUARDED_BY(mutex_);  // When the last file was committed.
  uint64_t free_bytes_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<uint64_t>::max();
  absl::Status commit_status_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::string> held_ ABSL_GUARDED_BY(mutex_);  // The prefix of HoldOpens.
  int opens_held_ ABSL_GUARDED_BY(mutex_) = 0;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_read_ = std::make_shared<std::atomic<uint64_t>>(0);
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_IN_MEMORY_STORAGE_H_
