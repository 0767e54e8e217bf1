#ifndef HOOKE_SERVER_PARAMETERS_ROUND_BOOK_H_
#define HOOKE_SERVER_PARAMETERS_ROUND_BOOK_H_

// Decides about the rounds of a shard: which contributions belong to a round, who is waited for, and when it closes.
//
// Each block has a queue of contributions. A round takes all of its block's queue at once. The first block of a rank's
// exchange settles the exchange's pass. A pass is a set of groups that share a round at that block. The same groups
// then share a round at every later block of their exchanges. If each block decided anew, two groups could wait for
// each other. Let group A join while group B is in the middle of its slice. A would wait for B at the first block, and
// B for A in the middle.
//
// An arrival looks through the groups only if all awaited ones may have contributed.
//
// Pure: the caller passes the time, and no values are copied. It knows no threads and no answers: the caller keeps what
// belongs to each queued contribution, and applies the rounds that close. Not thread-safe.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/center_rule.h"
#include "algorithms/roster.h"
#include "algorithms/round.h"
#include "server/parameters/answer_window.h"

namespace hooke {

class RoundBook {
 public:
  struct Options {
    uint32_t groups = 1;
    uint32_t slices = 1;  // Ranks of each group that exchange: each has a slice.
    uint64_t blocks = 0;  // Blocks of the shard that have rounds; 0 under rules without rounds.
    RoundOptions round = {};
    bool drops_late = false;  // RuleTraits::drops_late.
  };
  explicit RoundBook(const Options& options);
  // The most memory that a block takes while its queue is empty.
  static constexpr uint64_t kBlockBytes = 160;

  // Returns the groups for which rounds wait. Arrive and NoteApplied change the roster.
  Roster& roster() { return roster_; }
  // Records that a group has attached. A group that is awaited but never attached has trained nothing.
  void NoteCome(uint32_t group) { come_[group] = true; }
  // Records that an incarnation begins; its group's last exchange before is `from.sequence`. False, and without effect,
  // if the last call for this group named the same incarnation.
  bool Begin(uint32_t group, const ExchangeId& from);
  // Returns the step at which the contribution of exchange `id` to a block begins. `last` is the group's last exchange
  // of the block. A new incarnation goes on from the group's block that is furthest behind. So its first contribution
  // to every block begins at that step, even if the block itself is further.
  uint64_t StepsFrom(uint32_t group, const ExchangeId& id, const ExchangeId& last) const;

  // A group's contribution to a block.
  struct Arrival {
    uint64_t block = 0;
    uint32_t rank = 0;
    ExchangeId id;
    bool first = false;  // The block is the rank's first one, or the first one of a fragment.
    bool late = false;   // The contribution is from an older center than the present one.
    // The contribution itself. The caller keeps `from.values` alive while the contribution is queued.
    Contribution from;
  };
  // The updates of a block so far.
  struct History {
    uint64_t updates = 0;             // How many updates the block has had.
    absl::Span<const uint64_t> seen;  // For each group: the version of its copy of the block.
  };

  struct Pass {
    uint64_t number = 0;           // Later passes have higher numbers; >= 1.
    std::vector<uint32_t> groups;  // Ascending.
    std::vector<uint32_t> live;    // The groups that trained when the pass was settled.
    // The number of `groups` that are awaited, as of Roster::changes() `counted`.
    mutable uint32_t awaited = 0;
    mutable uint64_t counted = 0;
  };
  // A queued contribution.
  struct Member {
    uint32_t group = 0;
    uint32_t rank = 0;
    ExchangeId id;
    bool opens = false;  // Whether the exchange begins with this block.
    // Null if the exchange opens a pass, or if its first block came before a restart.
    std::shared_ptr<const Pass> pass;
  };
  // A round that has closed. Its contributions have left the queue.
  struct ClosedRound {
    uint64_t block = 0;
    std::vector<Contribution> contributions;  // Ascending by group.
    std::vector<uint32_t> live;               // The groups that train, ascending (LiveGroups).
    std::vector<uint32_t> missing;            // Groups that the round has waited for in vain.
    std::vector<Member> members;
    std::shared_ptr<const Pass> pass;  // The round waited for this pass's groups; null: for all awaited groups.
  };

  enum class Fate { kDropped, kQueued, kClosed };
  struct Decision {
    Fate fate = Fate::kQueued;
    // Whether the arrival has replaced an earlier contribution of the group in the queue.
    bool replaces = false;
    // If the fate is kQueued: the time at which to call Look, if nothing has closed the round before.
    absl::Time again = absl::InfiniteFuture();
    const char* reason = "";
    // If the fate is kClosed: the round to apply. Then call NoteApplied, unless the round could not be applied.
    ClosedRound round;
  };
  // Takes a contribution.
  Decision Arrive(absl::Time now, const Arrival& arrival, const History& history);
  // Decides again about a block with a queue, because time has passed, or a group has come or gone.
  Decision Look(absl::Time now, uint64_t block, const History& history);
  // Takes the group's contribution out of the block's queue, if there is one.
  void Withdraw(uint64_t block, uint32_t group);
  // Records that a round was applied. Its missing groups are not awaited any more. If there are any, call Look for all
  // other blocks with a queue.
  void NoteApplied(const ClosedRound& round);

 private:
  // The pass of a rank's last exchange. Null: the exchange was dropped.
  struct Place {
    ExchangeId id;
    std::shared_ptr<const Pass> pass;
  };
  // The state at the moment when the group's incarnation began.
  struct Begun {
    ExchangeId id;      // The group's last exchange before that moment.
    uint64_t pass = 0;  // The number of the last pass before that moment.
  };
  struct Queue {
    explicit Queue(const RoundOptions& options) : round(options) {}
    Round round;
    std::vector<Member> members;  // In the order of arrival.
    // The different passes of the members; null for those without one. Each may close the round.
    std::vector<std::shared_ptr<const Pass>> passes;
    uint64_t pass = 0;  // The highest number of a pass that had a round here.
  };

  // True if the arrival is dropped because it is from too old a center. `place` belongs to the arrival's exchange; null
  // if the book has none for it.
  bool IsToBeDropped(const Arrival& arrival, const Place* place) const;
  // True if this pass (see the top of the file) or a later one has had a round at the block. Then a contribution of
  // this pass waits for no other group there.
  static bool IsOver(const Pass& pass, const Queue& queue) { return queue.pass >= pass.number; }
  RoundDecision DecideFor(const Pass* pass, const Queue& queue, absl::Time now) const;
  // Returns how many groups of the pass are awaited. It counts them only after the roster has changed.
  uint32_t AwaitedOf(const Pass& pass) const;
  ClosedRound Close(uint64_t block, std::shared_ptr<const Pass> pass, std::vector<uint32_t> missing,
                    const History& history);
  // Returns the groups that train, ascending. These are the groups of the round and those that it waited for in vain.
  // Groups that were in other rounds since this round's groups had their last answers train, too. For a later block of
  // an exchange, the result includes the groups that were live at its first block. A group that is expected but has
  // never come has trained nothing, so it is not live.
  std::vector<uint32_t> LiveGroups(const Queue& queue, absl::Span<const uint32_t> missing,
                                   const History& history) const;
  // Returns the number of the pass of this rank's previous exchange. If that has none, returns the number of the last
  // pass before the group's incarnation began. If that is not known, after a restart of the server: of the last pass so
  // far.
  uint64_t PassBefore(const Member& opener) const;
  // Opens a pass for the members whose exchange begins with this round's block. Null if there are none.
  std::shared_ptr<const Pass> OpenPass(const ClosedRound& round);
  // Puts the pass in front of Queue::passes.
  static void NotePass(const std::shared_ptr<const Pass>& pass, Queue& queue);
  Place& PlaceOf(uint32_t group, uint32_t rank) { return places_[size_t{group} * options_.slices + rank]; }
  const Place& PlaceOf(uint32_t group, uint32_t rank) const { return places_[size_t{group} * options_.slices + rank]; }

  const Options options_;
  Roster roster_;
  std::vector<Queue> queues_;  // Indexed by block.
  std::vector<Place> places_;  // Indexed by group, then rank; empty without rounds.
  uint64_t passes_ = 0;
  std::vector<uint64_t> dismissed_;  // For each group: the last pass that waited for it in vain.
  std::vector<Begun> begun_;         // Indexed by group.
  std::vector<bool> come_;           // Indexed by group.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_ROUND_BOOK_H_
