#include "mpi_group/node/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpi_group/call.h"
#include "mpi_group/collectives/on_all_ranks.h"
#include "mpi_group/collectives/texts.h"

namespace hooke {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack.

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

using Name = std::array<char, 60>;  // Zero-terminated.

// The first rank's message to the others.
struct Offer {
  Name name = {};     // The path under which to open the object.
  int32_t error = 0;  // The errno of making the object; 0 if it was made.
  uint64_t device = 0;
  uint64_t inode = 0;
};

enum class Named { kNo, kYes };

// Makes an empty shared memory object and returns its descriptor; -1 and errno on failure.
int Make(Named named, Offer& offer) {
  int file = -1;
  if (named == Named::kYes) {
    std::random_device random;
    absl::SNPrintF(offer.name.data(), offer.name.size(), "/dev/shm/hooke-%d-%08x%08x", getpid(), random(), random());
    file = open(offer.name.data(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  } else {
    file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    absl::SNPrintF(offer.name.data(), offer.name.size(), "/proc/%d/fd/%d", getpid(), file);
  }
  struct stat made = {};
  if (file < 0 || fstat(file, &made) != 0) offer.error = errno;
  offer.device = made.st_dev;
  offer.inode = made.st_ino;
  return file;
}

// Opens the offered object and returns its descriptor. -1 and errno if this rank finds no object under the name, or
// another file.
int Open(const Offer& offer) {
  // The path may name anything here: do not take a terminal, and do not wait for a pipe.
  const int file = open(offer.name.data(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat opened = {};
  if (file < 0) return file;
  if (fstat(file, &opened) == 0 && opened.st_dev == offer.device && opened.st_ino == offer.inode) return file;
  close(file);
  errno = ENOENT;
  return -1;
}

// Returns OK if `ok` is true on all ranks, else `error` on each, or the error of the vote itself.
absl::Status Agree(Transport& transport, bool ok, const absl::Status& error, absl::Time deadline) {
  const absl::StatusOr<bool> all = OnAllRanks(transport, ok, deadline);
  if (!all.ok()) return all.status();
  return *all ? absl::OkStatus() : error;
}

// The error if the ranks have no common object. It says why, as far as this rank knows. `error` is its own errno, 0 if
// it could open the object.
absl::Status NotOpened(const Offer& offer, int error) {
  std::string why =
      "another rank of the node cannot open the shared memory object that this one can; that rank's "
      "warning says why";
  if (offer.error != 0) {
    why = absl::StrCat("the node's first rank cannot make a shared memory object in /dev/shm: ",
                       std::generic_category().message(offer.error));
  } else if (error != 0) {
    why = absl::StrCat("this rank cannot open ", offer.name.data(),
                       ", the shared memory object of the node's first rank: ", std::generic_category().message(error));
    if (error == ENOENT) absl::StrAppend(&why, "; they are not on one node, or have each a /dev/shm of their own");
  }
  return absl::FailedPreconditionError(why);
}

// Opens the same empty object on all ranks. If it had a name, that is already removed on return.
absl::StatusOr<int> OpenTogether(Transport& transport, Named named, absl::Time deadline) {
  Offer offer;
  int file = -1;
  if (transport.rank() == 0) file = Make(named, offer);
  const bool made = file >= 0;
  absl::Status status = Spread(transport, {reinterpret_cast<char*>(&offer), sizeof(offer)}, deadline);
  if (status.ok()) {
    if (transport.rank() != 0 && offer.error == 0) file = Open(offer);
    const int error = file < 0 ? errno : 0;
    status = Agree(transport, file >= 0 && offer.error == 0, NotOpened(offer, error), deadline);
  }
  if (made && named == Named::kYes) unlink(offer.name.data());
  if (status.ok()) return file;
  if (file >= 0) close(file);
  return status;
}

// Maps the whole file, aligned to huge pages; MAP_FAILED if it cannot.
void* MapFile(int file, uint64_t bytes) {
  // mmap cannot align to huge pages. So take more address space than needed, map the file over its aligned part, and
  // give back the rest.
  void* const room =
      mmap(nullptr, bytes + kHugePageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return MAP_FAILED;
  const auto begin = reinterpret_cast<uintptr_t>(room);
  const uint64_t before = RoundUp(begin, kHugePageBytes) - begin;
  char* const aligned = static_cast<char*>(room) + before;
  void* const base = mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (base == MAP_FAILED) {
    munmap(room, bytes + kHugePageBytes);
    return MAP_FAILED;
  }
  if (before > 0) munmap(room, before);
  if (before < kHugePageBytes) munmap(aligned + bytes, kHugePageBytes - before);
  return base;
}

// Reserves memory for a part of the file, so that touching it never fails. Memory is reserved through the mapping,
// because only then does the system give huge pages. Kernels before 5.14 cannot do that; for them posix_fallocate
// reserves it in the file.
bool Reserve(int file, char* base, uint64_t offset, uint64_t bytes) {
  if (bytes >= kHugePageBytes) madvise(base + offset, bytes, MADV_HUGEPAGE);
  int error = EINTR;
  while (error == EINTR) error = madvise(base + offset, bytes, kPopulateWrite) == 0 ? 0 : errno;
  if (error == 0) return true;
  if (error != EINVAL) return false;
  error = EINTR;
  while (error == EINTR) error = posix_fallocate(file, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  return error == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Create(Transport& transport, uint64_t bytes_per_rank,
                                                                   absl::Time deadline) {
  const uint64_t limit = std::numeric_limits<off_t>::max() / transport.size() - 2 * kHugePageBytes;
  if (bytes_per_rank > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no node has room for ", bytes_per_rank, " bytes of shared memory per rank"));
  }
  const uint64_t region = RoundUp(bytes_per_rank, bytes_per_rank >= kHugePageBytes ? kHugePageBytes : kPageBytes);
  const uint64_t total = region * transport.size();
  absl::StatusOr<int> file = OpenTogether(transport, Named::kNo, deadline);
  if (absl::IsFailedPrecondition(file.status())) file = OpenTogether(transport, Named::kYes, deadline);
  if (!file.ok()) return file.status();
  const auto close_file = absl::MakeCleanup([&file] { close(*file); });

  const absl::Status no_room = absl::ResourceExhaustedError(
      absl::StrCat("no room for ", total, " bytes of shared memory on the node: enlarge /dev/shm"));
  // Every rank sets the file's size, to the same value, before it maps it. So no rank depends on another's ftruncate.
  void* base = ftruncate(*file, static_cast<off_t>(total)) == 0 ? MapFile(*file, total) : MAP_FAILED;
  absl::Status status = Agree(transport, base != MAP_FAILED, no_room, deadline);
  if (status.ok()) {
    // Each rank reserves its own region, so that its memory is close to that rank's core.
    const bool reserved = Reserve(*file, static_cast<char*>(base), region * transport.rank(), region);
    status = Agree(transport, reserved, no_room, deadline);
  }
  if (status.ok()) {
    // Pages of other ranks are mapped when they are touched. A rank touches only its slice of most of them.
    if (region >= kHugePageBytes) madvise(base, total, MADV_HUGEPAGE);
    return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<char*>(base), region, transport.size()));
  }
  if (base != MAP_FAILED) munmap(base, total);
  return status;
}

SharedMemory::~SharedMemory() { munmap(base_, bytes_per_rank_ * ranks_); }

}  // namespace hooke
