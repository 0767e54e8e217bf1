#include "files/byte_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hooke {
namespace {

// The byte that a process locks while it chooses. It is behind those of the things.
constexpr int64_t kChoosing = ByteLocks::kNumbersMax;
// A choice takes microseconds, so only a process that is stopped in the middle of one keeps the others waiting for
// long.
constexpr absl::Duration kPause = absl::Milliseconds(1);
constexpr int kTriesMax = 1000;

// Opens the file, and makes it if it is missing. Returns -1 and sets errno if that fails.
int OpenFile(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  // In a folder like /dev/shm, the kernel may refuse O_CREAT for an existing file of another user.
  int file = open(path.c_str(), kFlags);
  if (file >= 0 || errno != ENOENT) return file;
  file = open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
  if (file < 0) return errno == EEXIST ? open(path.c_str(), kFlags) : -1;
  // Processes of other users lock the same file, whatever this one's umask is.
  fchmod(file, 0666);
  return file;
}

struct flock LockOf(int64_t byte, int type) {
  struct flock lock = {};
  lock.l_type = static_cast<int16_t>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

bool Lock(int file, int64_t byte) {
  struct flock lock = LockOf(byte, F_WRLCK);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

void Unlock(int file, int64_t byte) {
  struct flock lock = LockOf(byte, F_UNLCK);
  fcntl(file, F_OFD_SETLK, &lock);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteLocks>> ByteLocks::Open(const std::string& path) {
  const int file = OpenFile(path);
  if (file < 0) return absl::InternalError(absl::StrCat(path, " cannot be opened: ", strerror(errno)));
  return absl::WrapUnique(new ByteLocks(path, file));
}

ByteLocks::~ByteLocks() {
  // A process that is just being started may still share the open file, so closing it here may not free the locks yet.
  struct flock all = LockOf(0, F_UNLCK);
  all.l_len = 0;  // To the end of the file, however far it grows.
  fcntl(file_, F_OFD_SETLK, &all);
  close(file_);
}

absl::Status ByteLocks::BeginChoice() {
  for (int i = 0; i < kTriesMax; ++i) {
    if (Lock(file_, kChoosing)) return absl::OkStatus();
    if (errno != EAGAIN && errno != EACCES) {
      return absl::InternalError(absl::StrCat(path_, " cannot be locked: ", strerror(errno)));
    }
    absl::SleepFor(kPause);
  }
  return absl::UnavailableError(absl::StrCat("another worker has not released ", path_));
}

void ByteLocks::EndChoice() { Unlock(file_, kChoosing); }

bool ByteLocks::IsTaken(int64_t number) const {
  struct flock lock = LockOf(number, F_WRLCK);
  return fcntl(file_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void ByteLocks::Take(int64_t number) { Lock(file_, number); }

void ByteLocks::GiveBack(int64_t number) { Unlock(file_, number); }

}  // namespace hooke
