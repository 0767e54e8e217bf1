#ifndef HOOKE_MPI_GROUP_NODE_NODE_MEETING_H_
#define HOOKE_MPI_GROUP_NODE_NODE_MEETING_H_

// How the ranks of one node meet in memory that all of them reach: one after the other arrives with what it brings, all
// go on when the last has come. What node_collectives.h is made of. Tests lay it over ordinary memory that threads
// share.
//
// Meetings are counted in rounds. A rank has two slots, for odd and even rounds: it fills the round's slot, arrives,
// and may then read what all others brought. Two are enough: a rank fills the slot of round k again for round k + 2,
// that is after round k + 1 was over, to which each rank came only after it had read all it wanted of round k. So one
// meeting per call is enough too. The same holds for anything else that is written before the meeting of one round and
// read between it and the next.
//
// Calls come from one thread at a time. Errors are a Transport's: DEADLINE_EXCEEDED names all ranks that are missing;
// UNAVAILABLE a rank that left; INVALID_ARGUMENT, on all ranks: they are about to do different things.

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/data_type.h"

namespace hooke {

// What a rank is about to do; all ranks must be about to do the same.
struct Purpose {
  uint64_t values = 0;
  uint64_t places = 0;  // Stands for where the values lie, as far as that must be the same on all ranks.
  int32_t root = -1;
  uint8_t operation = 0;  // An Operation.
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  uint8_t route = 0;  // Tells apart ways of doing it.

  friend bool operator==(const Purpose& a, const Purpose& b) {
    return a.values == b.values && a.places == b.places && a.root == b.root && a.operation == b.operation &&
           a.type == b.type && a.op == b.op && a.route == b.route;
  }
};

// How long to wait in which way: first spinning, then giving the core away, then asleep.
struct Patience {
  int spins = 2000;
  int yields = 20;
};
// Among ranks that have a core each, spinning is fastest; else it keeps from work whom one waits for.
Patience PatienceFor(bool enough_cores);

class NodeMeeting {
 public:
  struct Options {
    int rank = 0;
    int ranks = 1;
    // A region per rank follows another. Zeroed before the first rank makes its meeting; 64-byte aligned; outlives it.
    char* base = nullptr;
    uint64_t bytes_per_rank = 0;  // A multiple of 64, at least RegionBytes(slot_bytes, extra_bytes).
    uint64_t slot_bytes = 0;      // What a rank can bring.
    uint64_t extra_bytes = 0;     // More memory of a rank's, for what all know how to use; any size.
    // As others know the ranks: local rank i is numbers[i]; empty: i.
    std::vector<int> numbers;
    // Asked now and then by a rank that waits long: an error ends the wait. May be null.
    std::function<absl::Status()> interrupted;
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
  // Before this is called: as for too few cores.
  void SetPatience(const Patience& patience) { patience_ = patience; }

  // From here a new time limit runs, for any number of meetings. The clock is read only by who waits for long.
  void Begin(absl::Duration limit) {
    limit_ = limit;
    deadline_ = absl::InfinitePast();
  }
  // When the rank that waits began to do so, as far as the clock was read since Begin.
  absl::Time waiting_since() const { return deadline_ == absl::InfinitePast() ? deadline_ : deadline_ - limit_; }

  // Where this rank puts what it brings to the next meeting: 32-byte aligned.
  char* NextSlot() { return SeatOf(rank_, round_ + 1).data(); }
  // Returns OK after all ranks have called it. What they wrote before is then visible to all.
  absl::Status Meet();
  // Checks too that all ranks have the same purpose.
  absl::Status Meet(const Purpose& purpose);
  // What a rank brought to the last meeting.
  const char* Slot(int rank) const { return SeatOf(rank, round_).data(); }
  // extra_bytes of a rank's, 64-byte aligned.
  char* Extra(int rank) const { return options_.base + options_.bytes_per_rank * rank + extra_offset_; }

 private:
  // The beginning of a slot. What is brought follows at once, so that a few values travel in the same cache line.
  // `arrived` is the last round to which the rank came with this slot, modulo 2^31, and kLeft once it is gone.
  struct alignas(32) Seat {
    std::atomic<uint32_t> arrived;
    std::atomic<uint32_t> sleepers;  // Ranks that may be asleep until `arrived` changes.
    Purpose purpose;

    char* data() { return reinterpret_cast<char*>(this + 1); }
    const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  };
  static constexpr uint32_t kLeft = 1u << 31;

  Seat& SeatOf(int rank, uint32_t round) const {
    return *reinterpret_cast<Seat*>(options_.base + options_.bytes_per_rank * rank + (round & 1) * seat_bytes_);
  }
  bool Arrived(int peer) const {
    return (SeatOf(peer, round_).arrived.load(std::memory_order_acquire) & ~kLeft) == round_;
  }
  void Arrive();
  absl::Status AwaitAll();
  absl::Status Await(int peer);
  absl::Status Sleep(int peer);
  absl::Status MissingRanks() const;
  absl::Status DifferentPurpose(int peer, const Purpose& purpose) const;
  int Number(int local) const { return options_.numbers.empty() ? local : options_.numbers[local]; }

  const Options options_;
  const int rank_;
  const int ranks_;
  const uint64_t seat_bytes_;
  const uint64_t extra_offset_;
  Patience patience_ = PatienceFor(/*enough_cores=*/false);
  uint32_t round_ = 0;
  absl::Duration limit_ = absl::InfiniteDuration();
  absl::Time deadline_ = absl::InfinitePast();  // Until somebody needs it.
};

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_NODE_NODE_MEETING_H_
