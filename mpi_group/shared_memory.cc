#include "mpi_group/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpi_group/call.h"
#include "mpi_group/reference.h"

namespace hooke {
namespace {

constexpr uint64_t kPageBytes = 4096;

using Name = std::array<char, 64>;  // Zero-terminated.

Name RandomName() {
  std::random_device random;
  Name name = {};
  absl::SNPrintF(name.data(), name.size(), "/hooke-%d-%08x%08x", getpid(), random(), random());
  return name;
}

// OK if `ok` on all ranks; else `error` on all ranks, or what keeps them from agreeing.
absl::Status Agree(Transport& transport, bool ok, const absl::Status& error, absl::Time deadline) {
  float flag = ok ? 1 : 0;
  Scratch scratch;
  absl::Status status =
      ReferenceAllReduce(transport, TensorList(absl::MakeSpan(&flag, 1)), ReduceOp::kMin, {deadline, scratch});
  if (!status.ok()) return status;
  return flag == 1 ? absl::OkStatus() : error;
}

absl::Status ShareName(Transport& transport, Name& name, absl::Time deadline) {
  if (transport.rank() != 0) return transport.Receive({0, absl::MakeSpan(name)}, deadline);
  for (int rank = 1; rank < transport.size(); ++rank) {
    absl::Status status = transport.Send({rank, absl::MakeConstSpan(name)}, deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The same empty object on all ranks, its name already gone. It takes no memory yet, so a rank killed in between leaves
// nothing but a name.
absl::StatusOr<int> OpenTogether(Transport& transport, absl::Time deadline) {
  Name name = {};
  int file = -1;
  if (transport.rank() == 0) {
    name = RandomName();
    file = shm_open(name.data(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  }
  absl::Status status = ShareName(transport, name, deadline);
  if (status.ok()) {
    if (transport.rank() != 0) file = shm_open(name.data(), O_RDWR | O_CLOEXEC, 0600);
    status = Agree(
        transport, file >= 0,
        absl::FailedPreconditionError("not all ranks can open one shared memory object: they are not on one node"),
        deadline);
  }
  if (transport.rank() == 0) shm_unlink(name.data());
  if (status.ok()) return file;
  if (file >= 0) close(file);
  return status;
}

bool Reserve(int file, uint64_t offset, uint64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file, offset, bytes);
  return error == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Create(Transport& transport, uint64_t bytes_per_rank,
                                                                   absl::Time deadline) {
  const uint64_t region = (bytes_per_rank + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uint64_t total = region * transport.size();
  const absl::StatusOr<int> file = OpenTogether(transport, deadline);
  if (!file.ok()) return file.status();
  const auto close_file = absl::MakeCleanup([&file] { close(*file); });

  const absl::Status no_room = absl::ResourceExhaustedError(
      absl::StrCat("no room for ", total, " bytes of shared memory on the node: enlarge /dev/shm"));
  // Each rank reserves its own region, so that it lies in the memory next to that rank's core.
  absl::Status status = Agree(transport, Reserve(*file, region * transport.rank(), region), no_room, deadline);
  if (!status.ok()) return status;
  void* base = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, *file, 0);
  status = Agree(transport, base != MAP_FAILED, no_room, deadline);
  if (status.ok()) {
    return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<char*>(base), region, transport.size()));
  }
  if (base != MAP_FAILED) munmap(base, total);
  return status;
}

SharedMemory::~SharedMemory() { munmap(base_, bytes_per_rank_ * ranks_); }

}  // namespace hooke
