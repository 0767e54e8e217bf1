#include "mpi_group/shared_arena.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/call.h"
#include "mpi_group/reduce.h"

namespace hooke {

// Where a rank says how far it is. `arrived` is the last round (barrier) it has reached, modulo 2^31, and kLeft once it
// is gone.
struct alignas(64) SharedArena::Seat {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> sleepers;  // Ranks that may be asleep until `arrived` changes.
  std::atomic<uint64_t> purpose;
};

namespace {

constexpr uint32_t kLeft = 1u << 31;
// A peer that works on its own slice is done while this rank spins; one that waits for this core gets it while this
// rank yields; one that is at other work lets this rank sleep.
constexpr int kSpins = 500;
constexpr int kYields = 10;
// Of the values reduced in one go: the result so far stays in the first-level cache.
constexpr size_t kBlock = 2048;

bool Reached(uint32_t arrived, uint32_t round) { return ((arrived - round) & ~kLeft) < (1u << 30); }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps while `word` holds `value`, until woken or the deadline; may return early.
void FutexWait(std::atomic<uint32_t>& word, uint32_t value, absl::Time deadline) {
  // Bounded, so that a deadline of the infinite future is a valid argument to the kernel.
  const absl::Duration wait = std::min(std::max(deadline - absl::Now(), absl::ZeroDuration()), absl::Hours(1));
  const timespec timeout = absl::ToTimespec(wait);
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

// Stands for a collective on these values; differs between different ones in all likelihood.
uint64_t Purpose(uint64_t operation, const SharedArena& arena, const TensorList& values) {
  uint64_t hash = operation + 1;
  const auto add = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  for (absl::Span<float> piece : values.pieces()) {
    add(piece.data() - arena.ValuesOf(arena.rank()).data());
    add(piece.size());
  }
  return hash;
}

void ReduceBlock(const SharedArena& arena, ReduceOp op, size_t offset, size_t size) {
  alignas(64) float sum[kBlock];
  const absl::Span<float> result(sum, size);
  const absl::Span<float> first = arena.ValuesOf(0).subspan(offset, size);
  std::copy(first.begin(), first.end(), sum);
  for (int rank = 1; rank < arena.ranks(); ++rank) ReduceInto(op, arena.ValuesOf(rank).subspan(offset, size), result);
  FinishReduction(op, arena.ranks(), result);
  for (int rank = 0; rank < arena.ranks(); ++rank) {
    std::copy(result.begin(), result.end(), arena.ValuesOf(rank).begin() + offset);
  }
}

}  // namespace

uint64_t SharedArena::RegionBytes(uint64_t values) { return sizeof(Seat) + (values * sizeof(float) + 63) / 64 * 64; }

SharedArena::Seat& SharedArena::SeatOf(int rank) const {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "seats are shared between processes");
  return *reinterpret_cast<Seat*>(layout_.base + layout_.bytes_per_rank * rank);
}

absl::Span<float> SharedArena::ValuesOf(int rank) const {
  return {reinterpret_cast<float*>(layout_.base + layout_.bytes_per_rank * rank + sizeof(Seat)), layout_.values};
}

bool SharedArena::Contains(const TensorList& values) const {
  const absl::Span<float> own = ValuesOf(rank());
  const std::less_equal<const float*> not_after;
  return std::all_of(values.pieces().begin(), values.pieces().end(), [&](absl::Span<float> piece) {
    return not_after(own.data(), piece.data()) && not_after(piece.data() + piece.size(), own.data() + own.size());
  });
}

SharedArena::~SharedArena() {
  Seat& own = SeatOf(rank());
  own.arrived.fetch_or(kLeft);
  FutexWakeAll(own.arrived);
}

absl::Status SharedArena::Barrier(absl::Time deadline) {
  round_ = (round_ + 1) & ~kLeft;
  Seat& own = SeatOf(rank());
  // Both this store and load, and the two of a sleeper in AwaitArrival, are sequentially consistent: either it sees the
  // arrival or it is seen.
  own.arrived.store(round_);
  if (own.sleepers.load() > 0) FutexWakeAll(own.arrived);
  for (int peer = 0; peer < ranks(); ++peer) {
    absl::Status status = AwaitArrival(peer, deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SharedArena::AwaitArrival(int peer, absl::Time deadline) {
  Seat& seat = SeatOf(peer);
  for (int i = 0; i < kSpins + kYields; ++i) {
    if (Reached(seat.arrived.load(std::memory_order_acquire), round_)) return absl::OkStatus();
    if (i < kSpins) {
      Pause();
    } else {
      sched_yield();
    }
  }
  absl::Status status;
  seat.sleepers.fetch_add(1);
  while (true) {
    const uint32_t arrived = seat.arrived.load();
    if (Reached(arrived, round_)) break;
    if ((arrived & kLeft) != 0) {
      status = absl::UnavailableError(absl::StrCat("waited for rank ", peer, ", which has left the group"));
      break;
    }
    if (absl::Now() >= deadline) {
      status = MissingRanks();
      break;
    }
    FutexWait(seat.arrived, arrived, deadline);
  }
  seat.sleepers.fetch_sub(1);
  return status;
}

absl::Status SharedArena::MissingRanks() const {
  std::string missing;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (!Reached(SeatOf(peer).arrived.load(), round_))
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", "rank ", peer);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("waited until the deadline for ", missing.empty() ? "nobody" : missing));
}

absl::Status SharedArena::Enter(uint64_t purpose, absl::Time deadline) {
  SeatOf(rank()).purpose.store(purpose, std::memory_order_relaxed);
  absl::Status status = Barrier(deadline);
  if (!status.ok()) return status;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (SeatOf(peer).purpose.load(std::memory_order_relaxed) == purpose) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", peer, " calls another operation, or on other places of the arena, than rank ", rank(),
                     "; all ranks must call the same operations in the same order"));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryAllReduce(SharedArena& arena, const TensorList& values, ReduceOp op, absl::Time deadline) {
  absl::Status status = arena.Enter(Purpose(static_cast<uint64_t>(op), arena, values), deadline);
  if (!status.ok()) return status;
  const float* own = arena.ValuesOf(arena.rank()).data();
  const TensorList slice = values.Slice(EvenParts(values.size(), arena.ranks())[arena.rank()]);
  for (absl::Span<float> piece : slice.pieces()) {
    const size_t begin = piece.data() - own;
    for (size_t done = 0; done < piece.size(); done += kBlock) {
      ReduceBlock(arena, op, begin + done, std::min(kBlock, piece.size() - done));
    }
  }
  return arena.Barrier(deadline);
}

absl::Status SharedMemoryAllGather(SharedArena& arena, const TensorList& values, absl::Span<const ValueRange> parts,
                                   absl::Time deadline) {
  constexpr uint64_t kAllGather = 100;  // Not a ReduceOp.
  absl::Status status = arena.Enter(Purpose(kAllGather, arena, values), deadline);
  if (!status.ok()) return status;
  const float* own = arena.ValuesOf(arena.rank()).data();
  const TensorList part = values.Slice(parts[arena.rank()]);
  for (absl::Span<float> piece : part.pieces()) {
    for (int peer = 0; peer < arena.ranks(); ++peer) {
      if (peer == arena.rank()) continue;
      std::copy(piece.begin(), piece.end(), arena.ValuesOf(peer).begin() + (piece.data() - own));
    }
  }
  return arena.Barrier(deadline);
}

}  // namespace hooke
