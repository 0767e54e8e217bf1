#include "tests/benchmarks/collectives/start_barrier.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace hooke {
namespace {

// How long a rank spins before it sleeps. It is longer than the skew of ranks that each have a core, and shorter than a
// time slice.
constexpr absl::Duration kSpin = absl::Microseconds(200);
constexpr uint64_t kMappedBytes = 4096;

void Sleep(std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec longest = {0, 100'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &longest, nullptr, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StartBarrier>> StartBarrier::Map(const std::string& path, int size) {
  static_assert(sizeof(Shared) <= kMappedBytes, "the file is too small");
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
  void* const memory = mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  close(file);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(error, absl::StrCat("mapping ", path));
  return std::unique_ptr<StartBarrier>(new StartBarrier(static_cast<Shared*>(memory), size));
}

StartBarrier::~StartBarrier() { munmap(shared_, kMappedBytes); }

absl::Status StartBarrier::Wait(absl::Duration timeout) {
  const uint32_t round = shared_->round.load(std::memory_order_acquire);
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    shared_->round.store(round + 1, std::memory_order_release);
    syscall(SYS_futex, &shared_->round, FUTEX_WAKE, size_, nullptr, nullptr, 0);
    return absl::OkStatus();
  }
  const absl::Time start = absl::Now();
  while (shared_->round.load(std::memory_order_acquire) == round) {
    const absl::Duration waited = absl::Now() - start;
    if (waited > timeout) return absl::DeadlineExceededError("a rank did not come to the barrier before a timed call");
    if (waited < kSpin) {
      sched_yield();
    } else {
      Sleep(shared_->round, round);
    }
  }
  return absl::OkStatus();
}

}  // namespace hooke
