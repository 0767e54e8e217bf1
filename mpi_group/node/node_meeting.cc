#include "mpi_group/node/node_meeting.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>

#include "absl/strings/str_cat.h"
#include "mpi_group/operation.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

// A waiting rank spins this often without a pause instruction, and with one afterwards.
constexpr int kEagerSpins = 64;
// How often a sleeping rank wakes to check for failures elsewhere.
constexpr absl::Duration kNap = absl::Milliseconds(10);

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps while `word` holds `value`, until woken or for at most `wait`; may return early.
void FutexWait(std::atomic<uint32_t>& word, uint32_t value, absl::Duration wait) {
  const timespec timeout = absl::ToTimespec(std::max(wait, absl::ZeroDuration()));
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

std::string Describe(const Purpose& purpose) {
  const auto operation = static_cast<Operation>(purpose.operation);
  std::string text = absl::StrCat(NameOf(operation));
  if (operation == Operation::kBarrier) return text;
  absl::StrAppend(&text, " of ", purpose.values, " ", NameOf(purpose.type), " values");
  if (Reduces(operation)) absl::StrAppend(&text, " to their ", NameOf(purpose.op));
  if (purpose.root >= 0) absl::StrAppend(&text, ", root ", purpose.root);
  return text;
}

}  // namespace

Patience PatienceFor(bool enough_cores) { return enough_cores ? Patience{2000, 20} : Patience{0, 40}; }

uint64_t NodeMeeting::RegionBytes(uint64_t slot_bytes, uint64_t extra_bytes) {
  return 2 * RoundUp(sizeof(SlotHeader) + slot_bytes, 64) + RoundUp(extra_bytes, 64);
}

NodeMeeting::NodeMeeting(const Options& options)
    : options_(options),
      rank_(options.rank),
      ranks_(options.ranks),
      slot_stride_(RoundUp(sizeof(SlotHeader) + options.slot_bytes, 64)),
      extra_offset_(2 * slot_stride_) {
  static_assert(std::atomic<uint32_t>::is_always_lock_free, "headers are shared between processes");
  static_assert(sizeof(SlotHeader) == 32, "a header and a few values share a cache line");
}

NodeMeeting::~NodeMeeting() {
  for (uint32_t parity : {0, 1}) {
    SlotHeader& own = HeaderOf(rank_, parity);
    own.arrived.fetch_or(kLeft);
    FutexWakeAll(own.arrived);
  }
}

absl::Status NodeMeeting::Meet() {
  Arrive();
  return AwaitAll();
}

absl::Status NodeMeeting::Meet(const Purpose& purpose) {
  HeaderOf(rank_, meeting_ + 1).purpose = purpose;
  Arrive();
  absl::Status status = AwaitAll();
  if (!status.ok()) return status;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (!(HeaderOf(peer, meeting_).purpose == purpose)) return DifferentPurpose(peer, purpose);
  }
  return absl::OkStatus();
}

void NodeMeeting::Arrive() {
  meeting_ = (meeting_ + 1) & ~kLeft;
  SlotHeader& own = HeaderOf(rank_, meeting_);
  // This store and load, and a sleeper's two accesses, are sequentially consistent. So either the sleeper sees the
  // arrival, or this rank sees the sleeper and wakes it.
  own.arrived.store(meeting_);
  if (own.sleepers.load() > 0) FutexWakeAll(own.arrived);
}

absl::Status NodeMeeting::AwaitAll() {
  for (int peer = 0; peer < ranks_; ++peer) {
    if (Arrived(peer)) continue;
    absl::Status status = Await(peer);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status NodeMeeting::Await(int peer) {
  for (int i = 0; i < patience_.spins; ++i) {
    if (Arrived(peer)) return absl::OkStatus();
    if (i >= kEagerSpins) Pause();
  }
  for (int i = 0; i < patience_.yields; ++i) {
    if (Arrived(peer)) return absl::OkStatus();
    sched_yield();
  }
  SlotHeader& header = HeaderOf(peer, meeting_);
  header.sleepers.fetch_add(1);
  absl::Status status = Sleep(peer);
  header.sleepers.fetch_sub(1);
  return status;
}

absl::Status NodeMeeting::Sleep(int peer) {
  SlotHeader& header = HeaderOf(peer, meeting_);
  absl::Time now = SteadyNow();
  if (deadline_ == absl::InfinitePast()) deadline_ = now + limit_;
  while (true) {
    const uint32_t arrived = header.arrived.load();
    if ((arrived & ~kLeft) == meeting_) return absl::OkStatus();
    if ((arrived & kLeft) != 0) {
      return absl::UnavailableError(absl::StrCat("waited for rank ", Number(peer), ", which has left the group"));
    }
    if (now >= deadline_) return MissingRanks();
    FutexWait(header.arrived, arrived, std::min(deadline_ - now, kNap));
    now = SteadyNow();
    if (header.arrived.load() != arrived) continue;
    if (absl::Status status = LookAround(); !status.ok()) return status;
  }
}

absl::Status NodeMeeting::LookAround() const {
  absl::Status status = options_.interrupted ? options_.interrupted() : absl::OkStatus();
  for (int peer = 0; peer < ranks_ && status.ok() && options_.has_ended; ++peer) {
    if (Arrived(peer) || !options_.has_ended(peer)) continue;
    // The peer may have arrived and ended since the first check; then nothing is missing. A rank that ended cannot
    // arrive any more, so this check is final.
    if (Arrived(peer)) continue;
    status = absl::UnavailableError(absl::StrCat("waited for rank ", Number(peer), ", whose process has ended"));
  }
  return status;
}

absl::Status NodeMeeting::MissingRanks() const {
  std::string missing;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (!Arrived(peer)) absl::StrAppend(&missing, missing.empty() ? "" : ", ", "rank ", Number(peer));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("waited until the deadline for ", missing.empty() ? "nobody" : missing));
}

absl::Status NodeMeeting::DifferentPurpose(int peer, const Purpose& purpose) const {
  const Purpose& other = HeaderOf(peer, meeting_).purpose;
  const std::string own_text = Describe(purpose);
  const std::string other_text = Describe(other);
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", Number(peer), " calls ", other_text, " where rank ", Number(rank_), " calls ",
                   own_text == other_text ? "it with other parts or values that lie elsewhere" : own_text,
                   "; all ranks must call the same operations in the same order"));
}

}  // namespace hooke
