#ifndef HOOKE_FILES_BYTE_LOCKS_H_
#define HOOKE_FILES_BYTE_LOCKS_H_

// Locks by which the processes of a machine divide numbered things among themselves, such as its CPUs. Thing N is taken
// while byte N of a file is locked. The file stays empty. The kernel frees the locks of a process that has died.
//
// The locks are those of an open file (fcntl, F_OFD_SETLK), not of a process. So two objects of one process are
// strangers to each other, as if they belonged to two processes.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hooke {

class ByteLocks {
 public:
  // Things have numbers from 0 to less than this.
  static constexpr int64_t kNumbersMax = int64_t{1} << 60;

  // Opens the file, and makes it for all users if it is missing. INTERNAL: it cannot be opened, and why, as in
  // "/dev/shm/hooke.cores cannot be opened: Permission denied".
  static absl::StatusOr<std::unique_ptr<ByteLocks>> Open(const std::string& path);
  // Frees all locks of this object.
  ~ByteLocks();
  ByteLocks(const ByteLocks&) = delete;
  ByteLocks& operator=(const ByteLocks&) = delete;

  // Begins a choice. Until EndChoice no other process chooses, so what is free stays free. UNAVAILABLE: another one has
  // been choosing for a second. INTERNAL: the file cannot be locked.
  absl::Status BeginChoice();
  void EndChoice();

  // Returns whether another object has taken the thing, or the file cannot tell.
  bool IsTaken(int64_t number) const;
  // Takes a thing that is free, between BeginChoice and EndChoice. Taking twice is the same as once.
  void Take(int64_t number);
  void GiveBack(int64_t number);

 private:
  ByteLocks(std::string path, int file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const int file_;
};

}  // namespace hooke

#endif  // HOOKE_FILES_BYTE_LOCKS_H_
