#ifndef HOOKE_MPI_GROUP_NODE_NODE_MEETING_H_
#define HOOKE_MPI_GROUP_NODE_NODE_MEETING_H_

// A meeting of the ranks of one node in memory that they share: a barrier at which each rank can also hand data to the
// others. The functions of node_collectives.h are built on it. Tests lay it over ordinary memory that threads share.
//
// Meetings are numbered. A rank has two slots, one for odd and one for even numbers. It fills the meeting's slot,
// arrives, and may then read what all others brought.
//
// Two slots are enough. A rank fills the slot of meeting k again for meeting k + 2, after meeting k + 1 is over. Each
// rank came to meeting k + 1 only after it had read all that it wanted of meeting k. So one meeting per call is enough
// too. For the same reason two buffers are enough for any other memory that ranks write before one meeting and read
// before the next.
//
// Calls come from one thread at a time. Errors are those of a Transport. DEADLINE_EXCEEDED names all missing ranks.
// UNAVAILABLE names a rank that has left or whose process has ended. INVALID_ARGUMENT, on all ranks, means that their
// purposes differ.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/data_type.h"

namespace hooke {

// The operation that a rank is about to do. All ranks must bring equal purposes to a meeting.
struct Purpose {
  uint64_t values = 0;
  uint64_t places = 0;  // A hash of what else must be equal: parts, chunk size, and the values' offsets in an arena.
  int32_t root = -1;
  uint8_t operation = 0;  // An Operation, as a number.
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  uint8_t route = 0;  // The Algorithm of the operation, as a number.

  friend bool operator==(const Purpose& a, const Purpose& b) {
    return a.values == b.values && a.places == b.places && a.root == b.root && a.operation == b.operation &&
           a.type == b.type && a.op == b.op && a.route == b.route;
  }
};

// How a rank waits: it spins `spins` times, then yields the core `yields` times, then sleeps.
struct Patience {
  int spins = 2000;
  int yields = 20;
};
// Spinning is fastest if every rank has its own core. Otherwise spinning takes the core from a rank that is waited for.
Patience PatienceFor(bool enough_cores);

class NodeMeeting {
 public:
  struct Options {
    int rank = 0;
    int ranks = 1;
    // Start of the shared memory: one region per rank, one after the other. It is zeroed before the first rank makes
    // its meeting, 64-byte aligned, and outlives the meeting.
    char* base = nullptr;
    uint64_t bytes_per_rank = 0;  // A multiple of 64, at least RegionBytes(slot_bytes, extra_bytes).
    uint64_t slot_bytes = 0;      // Bytes that a rank can bring to a meeting.
    uint64_t extra_bytes = 0;     // Size of the additional memory of a rank, which the meeting itself does not use.
    // The ranks' numbers in the group, for errors: local rank i is numbers[i]. Empty: i.
    std::vector<int> numbers;
    // Called now and then in a long wait; an error ends the wait. May be null.
    std::function<absl::Status()> interrupted;
    // Called as rarely as `interrupted`, for each rank that has not come. Returns whether that rank's process has
    // ended. May be null.
    std::function<bool(int rank)> has_ended;
  };
  static uint64_t RegionBytes(uint64_t slot_bytes, uint64_t extra_bytes);

  explicit NodeMeeting(const Options& options);
  // Tells the others that this rank has left.
  ~NodeMeeting();
  NodeMeeting(const NodeMeeting&) = delete;
  NodeMeeting& operator=(const NodeMeeting&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  uint64_t slot_bytes() const { return options_.slot_bytes; }
  // Sets how waits spin and sleep. The default is PatienceFor(/*enough_cores=*/false).
  void SetPatience(const Patience& patience) { patience_ = patience; }

  // Starts a new time limit, for any number of meetings. To save time the clock is read only once a rank has to wait
  // for long.
  void Begin(absl::Duration limit) {
    limit_ = limit;
    deadline_ = absl::InfinitePast();
  }
  // The time at which the first long wait since Begin() started; InfinitePast if there was none.
  absl::Time waiting_since() const { return deadline_ == absl::InfinitePast() ? deadline_ : deadline_ - limit_; }

  // Memory for what this rank brings to the next meeting: its slot, 32-byte aligned.
  char* NextSlot() { return HeaderOf(rank_, meeting_ + 1).data(); }
  // Returns OK after all ranks have called it; everything they wrote before is then visible to all.
  absl::Status Meet();
  // Does what Meet() does, and checks that all ranks bring the same purpose.
  absl::Status Meet(const Purpose& purpose);
  // The slot that `rank` filled for the last meeting.
  const char* Slot(int rank) const { return HeaderOf(rank, meeting_).data(); }
  // The additional memory of a rank: extra_bytes, 64-byte aligned.
  char* Extra(int rank) const { return options_.base + options_.bytes_per_rank * rank + extra_offset_; }

 private:
  // The header of a slot. The data follows directly, so that a few values travel in the same cache line.
  //
  // `arrived` is the last meeting to which the rank came with this slot, modulo 2^31; the kLeft bit is set once the
  // rank is gone.
  struct alignas(32) SlotHeader {
    std::atomic<uint32_t> arrived;
    std::atomic<uint32_t> sleepers;  // Number of ranks that may sleep until `arrived` changes.
    Purpose purpose;

    char* data() { return reinterpret_cast<char*>(this + 1); }
    const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  };
  static constexpr uint32_t kLeft = 1u << 31;

  SlotHeader& HeaderOf(int rank, uint32_t meeting) const {
    return *reinterpret_cast<SlotHeader*>(options_.base + options_.bytes_per_rank * rank +
                                          (meeting & 1) * slot_stride_);
  }
  bool Arrived(int peer) const {
    return (HeaderOf(peer, meeting_).arrived.load(std::memory_order_acquire) & ~kLeft) == meeting_;
  }
  void Arrive();
  absl::Status AwaitAll();
  absl::Status Await(int peer);
  absl::Status Sleep(int peer);
  absl::Status LookAround() const;
  absl::Status MissingRanks() const;
  absl::Status DifferentPurpose(int peer, const Purpose& purpose) const;
  int Number(int local) const { return options_.numbers.empty() ? local : options_.numbers[local]; }

  const Options options_;
  const int rank_;
  const int ranks_;
  const uint64_t slot_stride_;  // Bytes of a header and its slot.
  const uint64_t extra_offset_;
  Patience patience_ = PatienceFor(/*enough_cores=*/false);
  uint32_t meeting_ = 0;  // The number of the last meeting.
  absl::Duration limit_ = absl::InfiniteDuration();
  absl::Time deadline_ = absl::InfinitePast();  // InfinitePast until a wait needs it.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_NODE_MEETING_H_
