#include "worker/cores/node_cores.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hooke {
namespace {

// The byte that a worker locks while it chooses. It is far behind those of the CPUs.
constexpr int kChoosing = 1 << 24;
// A choice takes microseconds, so only a worker that is stopped in the middle of one keeps the others waiting for long.
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
  // Workers of other users lock the same file, whatever this worker's umask is.
  fchmod(file, 0666);
  return file;
}

struct flock LockOf(int byte, int type) {
  struct flock lock = {};
  lock.l_type = static_cast<int16_t>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

bool Lock(int file, int byte) {
  struct flock lock = LockOf(byte, F_WRLCK);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

void Unlock(int file, int byte) {
  struct flock lock = LockOf(byte, F_UNLCK);
  fcntl(file, F_OFD_SETLK, &lock);
}

// Whether another open file has the lock. A lock belongs to an open file, not to a process. So this is also true if
// another group of the same worker has it.
bool IsTaken(int file, int cpu) {
  struct flock lock = LockOf(cpu, F_WRLCK);
  return fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// Returns "" once this worker chooses, else why it cannot.
std::string LockChoosing(int file, const std::string& path) {
  for (int i = 0; i < kTriesMax; ++i) {
    if (Lock(file, kChoosing)) return "";
    if (errno != EAGAIN && errno != EACCES) return absl::StrCat(path, " cannot be locked: ", strerror(errno));
    absl::SleepFor(kPause);
  }
  return absl::StrCat("another worker has not released ", path);
}

std::unique_ptr<HeldCores> Unbound(std::string why) {
  CoresChoice choice;
  choice.why_not = std::move(why);
  return std::make_unique<HeldCores>(std::move(choice), -1);
}

}  // namespace

HeldCores::~HeldCores() {
  if (file_ < 0) return;
  // A process that is just being started may still share the open file, so closing it here may not free the locks yet.
  struct flock all = LockOf(0, F_UNLCK);
  all.l_len = 0;  // To the end of the file, however far it grows.
  fcntl(file_, F_OFD_SETLK, &all);
  close(file_);
}

std::unique_ptr<HeldCores> NodeCores::Take(uint32_t ranks) const {
  const int file = OpenFile(options_.file);
  if (file < 0) {
    return Unbound(absl::StrCat("the ranks of other workers are not known, because ", options_.file,
                                " cannot be opened: ", strerror(errno)));
  }
  std::string why_not = LockChoosing(file, options_.file);
  if (!why_not.empty()) {
    close(file);
    return Unbound(std::move(why_not));
  }
  std::set<int> taken;
  for (const Core& core : options_.cores) {
    for (const int cpu : core.cpus) {
      if (IsTaken(file, cpu)) taken.insert(cpu);
    }
  }
  CoresChoice choice = ChooseCores(options_.cores, taken, {options_.slots, ranks});
  for (const std::vector<int>& cpus : choice.cpus_of_rank) {
    for (const int cpu : cpus) Lock(file, cpu);  // It succeeds: the CPU was free, and nobody else chooses.
  }
  Unlock(file, kChoosing);
  return std::make_unique<HeldCores>(std::move(choice), file);
}

}  // namespace hooke
