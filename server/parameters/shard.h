#ifndef HOOKE_SERVER_PARAMETERS_SHARD_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_H_

// One job's shard of the center on this server: groups attach to it, and exchange its blocks.
//
// A shard puts together what other headers describe. Attachments knows which starts of groups may speak. Each Block has
// values, the rule's state, and the exchange that each group last applied. An exchange of a block is a Turn, which
// RoundTurns or SingleTurns serves. Both use the ShardParts. The shard attaches, dispatches turns to blocks, and sees
// to it that turns that wait are looked at and end.
//
// A shard knows no RPCs and no files, it has no threads, and deadlines use the clock that it is given. Thread-safe:
// exchanges of different blocks run in parallel, exchanges of one block one after another.
//
// While this process lives, no exchange is applied twice: the shard remembers the last exchange of each group with each
// block. A repeat changes nothing. Its answer is the kept one, or zeros if none is kept; under rules that answer with
// the center, it is the present center. A shard restored from a snapshot knows only the exchanges before the snapshot.
// So its last_sequence may be lower than the sequence of a group's last answered exchange.
//
// Blocks are named by the index of their first value in the whole vector (`first`), as on the wire.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/parameters/attachments.h"
#include "server/parameters/block.h"
#include "server/parameters/exchange_meter.h"
#include "server/parameters/group_reached.h"
#include "server/parameters/round_turns.h"
#include "server/parameters/served_exchanges.h"
#include "server/parameters/shard_parts.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/single_turns.h"
#include "server/parameters/turn.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

class Shard {
 public:
  // Takes the memory of the plan. All values are 0, and the center is not initialized. Waits use `clock`.
  // RESOURCE_EXHAUSTED: the machine has too little memory; no memory stays taken.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(
      ShardPlan plan, std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());

  // Makes the shard with which the center of `before` goes on in a later generation of the job, by the plan of
  // NextGeneration. It takes the values, the rule's state and the counts of updates of each block, and whether the
  // center is initialized and the job is to stop. A state of another size, which only bmuf's momentum may need, begins
  // with zeros. The new shard's counts of exchanges go on from those of `before`. What belongs to groups begins anew.
  // The blocks' memory is handed over, so at no time are there two copies. `before` is closed: its turns end with
  // GenerationOver, and its blocks are gone. RESOURCE_EXHAUSTED: as for Create; `before` is as it was.
  static absl::StatusOr<std::unique_ptr<Shard>> Succeed(ShardPlan plan, Shard& before);

  // Ends the generation: from the return on, nothing of starts below `successor` reaches the center, and they get
  // GenerationOver, as after Succeed. The shard waits for the plan of the next generation, which begins with start
  // `successor`. Returns how far each group had come, which changes no more. Empty if the shard has no say: it has no
  // blocks, or no values yet. A snapshot of the shard has the end, too. Idempotent.
  std::vector<GroupReached> EndGeneration(uint32_t successor);
  // The lowest incarnation that may speak: the plan's, or the one with which EndGeneration was called.
  uint32_t first_incarnation() const;

  const ShardPlan& plan() const { return parts_.plan; }
  uint64_t blocks() const { return plan().blocks.size(); }
  // Returns the range of the whole vector that this shard's block `block` < blocks() holds.
  Range BlockRange(uint64_t block) const { return plan().BlockRange(plan().blocks.begin + block); }

  // Returns whether all initial values of the center have been written.
  bool initialized() const { return parts_.attachments.initialized(); }
  // Returns the shard's version. It grows with each change that a snapshot must store: an update of a block, a block
  // that is written back, a dropped exchange, or the end of a group.
  uint64_t updates() const { return parts_.updates.load(std::memory_order_acquire) + parts_.attachments.changes(); }

  // Returns the highest sequence of the group that was applied to any block; 0: none.
  uint64_t HighestSequence(uint32_t group) const;

  struct Attached : Attachments::Answer {
    // The lowest, over all blocks, of the group's last applied sequences. The largest uint64 if the shard has no
    // blocks.
    uint64_t last_sequence = 0;
  };
  // Attaches an incarnation of a group; only attached ones may exchange. The caller has checked that the speaker has
  // the job's key. ABORTED: a later incarnation of the group has attached, or the incarnation's generation is over.
  // INVALID_ARGUMENT: there is no such group, rank or incarnation.
  absl::StatusOr<Attached> Attach(absl::Time now, const Speaker& speaker, absl::Duration lease);

  // Records a group's speed (0: not measured). Returns what the group needs to know before an exchange
  // (algorithms/pace.h). INVALID_ARGUMENT: the speed is not a finite number of at least 0. Other errors are those of
  // ApplyBlock.
  struct Pace : Attachments::Pace {
    uint32_t next_fragment = 0;
  };
  absl::StatusOr<Pace> TellPace(absl::Time now, const Speaker& speaker, double steps_per_second);

  // Records that this start of the speaker's group has made its last exchange: no other group waits for it any more.
  // With `stops`, the whole job is to stop, and TellPace says so from then on, also in later generations. Idempotent.
  // Errors are those of CheckSpeaker, and ABORTED: the shard's generation is over.
  absl::Status EndGroup(const Speaker& speaker, bool stops);

  // Writes the initial values of one block and renews the speaker's lease. UNAVAILABLE: `speaker` has no right to
  // initialize; attach again. INVALID_ARGUMENT: the block or a value is not allowed.
  absl::Status WriteInitial(absl::Time now, const Speaker& speaker, uint64_t first, absl::Span<const float> values);
  // Marks the center as initialized. Call it when all blocks are written. OK, without effect, if it is initialized
  // already. Errors are those of CheckSpeaker, and UNAVAILABLE as in WriteInitial.
  absl::Status CompleteInitialize(const Speaker& speaker) { return parts_.attachments.CompleteInitialize(speaker); }

  // Checks that the speaker's incarnation is the last one that attached, as Attachments::Check does.
  absl::Status CheckSpeaker(const Speaker& speaker) const { return parts_.attachments.Check(speaker); }

  // Applies the rule to one block and writes the answer. A repeat of an exchange is answered but not applied again.
  // With rounds, or a bound on staleness, the turn may have to wait for other groups. It waits for a dead group no
  // longer than the grace window. Returns the turn's status, or nullopt if it waits. While it waits, the turn and its
  // spans stay alive and unchanged. Another thread may call `done` before Begin has returned.
  //
  // Turns wait for deadlines, too. Whoever calls Begin must call LookAgain at until_look(), or use ApplyBlock.
  //
  // After an error `answer` is unspecified. The same exchange may be sent again, and is applied once.
  // INVALID_ARGUMENT: the block, the sequence or a value is not allowed, or the center would become infinite or NaN. In
  // the latter case the center stays as it was, and all groups of the round get the error.
  // ABORTED: a later incarnation has attached, or a later generation of the job has begun.
  // NOT_FOUND: the group must attach first. The center has no values yet, or the shard comes from a snapshot that is
  // older than this incarnation.
  // FAILED_PRECONDITION: the shard is closed.
  // UNAVAILABLE: try again. The round had no quorum within kRoundTimeout beyond the grace window, the same exchange
  // came again on another stream, or the server stops.
  std::optional<absl::Status> Begin(Turn& turn);
  static constexpr absl::Duration kRoundTimeout = RoundTurns::kTimeout;

  // Returns how long LookAgain need not be called if nothing else happens; InfiniteDuration: no turn waits. It may
  // return too little. Later turns may make it shorter, by the time that their Begin has returned.
  absl::Duration until_look() const;
  // Ends the turns of all blocks that need not wait any longer, because time has passed.
  void LookAgain();

  // Does the same as Begin, and blocks the calling thread until the turn has ended. It needs no calls of LookAgain.
  absl::Status ApplyBlock(const BlockExchange& exchange, absl::Span<const float> values, absl::Span<float> answer);

  // Writes one block of the center as it was after step `sequence` of the job's only group, which goes on from there in
  // a new incarnation. Only for shards that MayRewind. FAILED_PRECONDITION: this incarnation has exchanged the block
  // already, and a late message must not undo that exchange. Other errors are those of ApplyBlock.
  absl::Status Rewind(const BlockExchange& to, absl::Span<const float> values);
  // Returns whether the job has one group, and its rule keeps no state on the servers.
  bool MayRewind() const { return plan().job.groups() == 1 && plan().rule.traits.state_values == 0; }

  // Ends all exchanges. Call it when the job has ended. A block that is copied afterwards never changes again, so every
  // copy holds all exchanges that were answered. Turns that wait get FAILED_PRECONDITION.
  void Close();
  // True also once the generation has ended (EndGeneration, Succeed).
  bool closed() const { return parts_.attachments.closed(); }
  // Ends waits, now or later, with UNAVAILABLE. Call it when the server stops.
  void StopWaiting();

  // Counts this shard's exchanges. The caller of Begin tells it about messages, the shard about blocks.
  ExchangeMeter& meter() { return parts_.meter; }
  // The last exchanges of this shard, and of those that it has succeeded. The caller of Begin tells it about messages.
  // Never null.
  const std::shared_ptr<ServedExchanges>& served() const { return served_; }

  using BlockCopy = hooke::BlockCopy;
  // Returns a consistent copy of one block. `block` < blocks(). The copy has no values if Succeed has handed this
  // shard's blocks to another shard. Otherwise it has some.
  BlockCopy CopyBlock(uint64_t block) const;
  // The part of the shard's state that concerns groups and goes into a snapshot.
  using Groups = AttachedGroups;
  Groups CopyGroups() const { return parts_.attachments.Copy(); }

  // Restores one block of a snapshot. Call RestoreBlock and RestoreState before any other thread sees the shard.
  // Lengths are those of CopyBlock and CopyGroups. Groups that had attached and not ended are awaited. A group that
  // does not return costs the others one grace window.
  void RestoreBlock(uint64_t block, BlockCopy copy);
  void RestoreState(const Groups& groups, uint64_t updates);

 private:
  enum class Memory { kOfItsOwn, kOfAnother, kValuesOfAnother };
  static absl::StatusOr<std::unique_ptr<Shard>> Make(ShardPlan plan, std::shared_ptr<WaitClock> clock, Memory values);
  // The blocks have no values and no state yet: call Block::MakeValues and MakeState, or TakeOver.
  Shard(ShardPlan of, std::unique_ptr<CenterRule> rule, std::shared_ptr<WaitClock> clock);
  // Closes `before`, and takes over what Succeed describes.
  void TakeOver(Shard& before);

  // As for Begin: nullopt means that the turn waits.
  std::optional<absl::Status> ApplyTurn(Turn& turn, TurnEnds& ends);
  // Returns the lowest, over all blocks, of the group's last applied sequences.
  uint64_t LastSequence(uint32_t group) const;
  // Ends the group in the roster after its last step, so that no group waits for it. True: it has ended.
  bool LeaveAtEnd(const Turn& turn);
  // Ends the turns of the block's queue that need not wait any longer.
  void LookAtBlock(uint64_t index, TurnEnds& ends);
  void LookAtAllBlocks(TurnEnds& ends);
  // Looks at all blocks if groups have come or gone, then calls the continuations of all turns that have ended. Call it
  // without any lock.
  void Finish(TurnEnds ends);

  ShardParts parts_;
  const std::unique_ptr<BlockTurns[]> blocks_;
  RoundTurns rounds_;
  SingleTurns singles_;
  std::shared_ptr<ServedExchanges> served_ = std::make_shared<ServedExchanges>();  // Set before others see the shard.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_H_
