#ifndef HOOKE_SERVER_PARAMETERS_SHARD_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_H_

// One job's shard of the center on this server: the values, the rule that changes them, and the exchange that each
// group last applied to each block.
//
// shard_exchange.cc applies a block, shard_rounds.cc has what rounds add, and shard_waits.cc has deadlines and
// continuations. shard_copies.cc has what a snapshot or another shard takes from this one. Under a rule without rounds,
// Begin, ApplyTurn, ApplyAtOnce and Update apply an exchange.
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
//
// Under rules with rounds, round_book.h decides about them. An exchange that must wait is a Turn in its block's queue,
// not a thread. Whoever closes the round applies the rule to the values of all its turns, writes their answers, and
// calls their continuations. So no queue holds copies of values, and a turn that gives up leaves nothing behind.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/center_rule.h"
#include "algorithms/pace.h"
#include "server/parameters/answer_window.h"
#include "server/parameters/attach.h"
#include "server/parameters/exchange_meter.h"
#include "server/parameters/group_reached.h"
#include "server/parameters/round_book.h"
#include "server/parameters/served_exchanges.h"
#include "server/parameters/shard_plan.h"
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
  // with zeros. It counts exchanges on. What belongs to groups begins anew. The
  // blocks' memory is handed over, so at no time are there two copies. `before` is closed: its turns end with
  // GenerationOver, and its blocks are gone. RESOURCE_EXHAUSTED: as for Create; `before` is as it was.
  static absl::StatusOr<std::unique_ptr<Shard>> Succeed(ShardPlan plan, Shard& before);

  // Ends the generation: from the return on, nothing of starts below `successor` reaches the center, and they get
  // GenerationOver, as after Succeed. The shard waits for the plan of the next generation, which begins with start
  // `successor`. Returns how far each group had come, which changes no more. Empty if the shard has no say: it has no
  // blocks, or no values yet. A snapshot of the shard has the end, too. Idempotent.
  std::vector<GroupReached> EndGeneration(uint32_t successor) ABSL_LOCKS_EXCLUDED(mutex_, book_mutex_);
  // The lowest incarnation that may speak: the plan's, or the one with which EndGeneration was called.
  uint32_t first_incarnation() const;

  const ShardPlan& plan() const { return plan_; }
  uint64_t blocks() const { return plan_.blocks.size(); }
  // Returns the range of the whole vector that this shard's block `block` < blocks() holds.
  Range BlockRange(uint64_t block) const { return plan_.BlockRange(plan_.blocks.begin + block); }

  // Returns whether all initial values of the center have been written.
  bool initialized() const;
  // Returns the shard's version. It grows with each change that a snapshot must store: an update of a block, a block
  // that is written back, a dropped exchange, or the end of a group.
  uint64_t updates() const { return updates_.load(std::memory_order_acquire); }

  // Returns the highest sequence of the group that was applied to any block; 0: none.
  uint64_t HighestSequence(uint32_t group) const;

  struct Attached {
    AttachAnswer answer = AttachAnswer::kWait;
    std::string reason;
    // Whether `answer` differs from this incarnation's last answer, so that it is worth a log line.
    bool changed = true;
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
  struct Pace {
    uint32_t next_fragment = 0;
    double fastest_steps_per_second = 0;
    bool stops = false;  // EndGroup was called with `stops`.
  };
  absl::StatusOr<Pace> TellPace(absl::Time now, const Speaker& speaker, double steps_per_second);
  // Speeds that were reported longer ago than this do not count.
  static constexpr absl::Duration kPaceMemory = absl::Minutes(10);

  // Records that this start of the speaker's group has made its last exchange: no other group waits for it any more.
  // With `stops`, the whole job is to stop, and TellPace says so from then on, also in later generations. Idempotent.
  // Errors are those of CheckSpeaker, and ABORTED: the shard's generation is over.
  absl::Status EndGroup(const Speaker& speaker, bool stops) ABSL_LOCKS_EXCLUDED(mutex_, book_mutex_);

  // Writes the initial values of one block and renews the speaker's lease. UNAVAILABLE: `speaker` has no right to
  // initialize; attach again. INVALID_ARGUMENT: the block or a value is not allowed.
  absl::Status WriteInitial(absl::Time now, const Speaker& speaker, uint64_t first, absl::Span<const float> values);
  // Marks the center as initialized. Call it when all blocks are written. OK, without effect, if it is initialized
  // already. Errors are those of CheckSpeaker, and UNAVAILABLE as in WriteInitial.
  absl::Status CompleteInitialize(const Speaker& speaker);

  // Checks that the speaker's incarnation is the last one that attached. INVALID_ARGUMENT and ABORTED as in Attach, and
  // ABORTED if its generation has ended.
  // NOT_FOUND: the incarnation is a later one, which has not attached here. Its generation may be later, too, and have
  // other numbers of groups and ranks.
  absl::Status CheckSpeaker(const Speaker& speaker) const;

  struct Exchange {
    Speaker speaker;
    uint64_t sequence = 0;  // >= 1.
    uint64_t first = 0;
  };
  // An exchange of one block, for Begin.
  class Turn {
   public:
    Exchange exchange;
    absl::Span<const float> values;
    absl::Span<float> answer;  // As long as `values`.
    // Needed if MayWait. Called once, with the turn's status, if Begin has returned nullopt. The caller holds no lock,
    // and does not touch the turn afterwards. It may be any thread that uses the shard, so `done` must not wait.
    std::function<void(absl::Status)> done;
    // If Begin has returned nullopt: when the turn began to wait, on the clock of the shard's meter.
    absl::Time queued;
    // Begin adds the time for which other turns held its block.
    absl::Duration contended;

   private:
    friend class Shard;
    ExchangeId id;
    uint64_t block = 0;     // Index within the shard.
    bool moderate = false;  // The result of AllModerate(values) (algorithms/finite.h).
    absl::Time give_up;     // While it waits: when it ends if nothing has ended it before.
    uint32_t awaited = 0;   // While it waits under a bound on staleness: the group that is furthest behind.
  };
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
  static constexpr absl::Duration kRoundTimeout = absl::Seconds(10);
  // Returns whether a turn may have to wait.
  bool MayWait() const { return rule_->traits().in_rounds || rule_->traits().staleness_bound > 0; }

  // Returns how long LookAgain need not be called if nothing else happens; InfiniteDuration: no turn waits. It may
  // return too little. Later turns may make it shorter, by the time that their Begin has returned.
  absl::Duration until_look() const;
  // Ends the turns of all blocks that need not wait any longer, because time has passed.
  void LookAgain() ABSL_LOCKS_EXCLUDED(mutex_);

  // Does the same as Begin, and blocks the calling thread until the turn has ended. It needs no calls of LookAgain.
  absl::Status ApplyBlock(const Exchange& exchange, absl::Span<const float> values, absl::Span<float> answer);

  // Writes one block of the center as it was after step `sequence` of the job's only group, which goes on from there in
  // a new incarnation. Only for shards that MayRewind. FAILED_PRECONDITION: this incarnation has exchanged the block
  // already, and a late message must not undo that exchange. Other errors are those of ApplyBlock.
  absl::Status Rewind(const Exchange& to, absl::Span<const float> values);
  // Returns whether the job has one group, and its rule keeps no state on the servers.
  bool MayRewind() const { return plan_.job.groups() == 1 && rule_->traits().state_values == 0; }

  // Ends all exchanges. Call it when the job has ended. A block that is copied afterwards never changes again, so every
  // copy holds all exchanges that were answered. Turns that wait get FAILED_PRECONDITION.
  void Close();
  // True also once the generation has ended (EndGeneration, Succeed).
  bool closed() const { return closed_; }
  // Ends waits, now or later, with UNAVAILABLE. Call it when the server stops.
  void StopWaiting();

  // Counts this shard's exchanges. The caller of Begin tells it about messages, the shard about blocks.
  ExchangeMeter& meter() { return meter_; }
  // The last exchanges of this shard, and of those that it has succeeded. The caller of Begin tells it about messages.
  // Never null.
  const std::shared_ptr<ServedExchanges>& served() const { return served_; }

  // Returns the index within the shard of the block that starts at `first` and has `values` values. INVALID_ARGUMENT:
  // there is no such block; the message names what is allowed.
  absl::StatusOr<uint64_t> FindBlock(uint64_t first, uint64_t values) const;

  // A consistent copy of one block. `block` < blocks().
  struct BlockCopy {
    std::vector<ExchangeId> applied;  // For each group: its exchange that was applied last to this block.
    uint64_t updates = 0;             // Updates so far.
    std::vector<float> values;
    std::vector<float> state;  // The rule's state: RuleTraits::state_values floats per value.
  };
  // After Succeed the copy has no values, which a block of a center always has.
  BlockCopy CopyBlock(uint64_t block) const;
  // The part of the shard's state that concerns groups and goes into a snapshot.
  struct Groups {
    std::vector<uint32_t> incarnations;  // For each group, the highest incarnation that has attached; 0: none.
    std::vector<uint32_t> ended;         // By group: the incarnation for which EndGroup was called last; 0: none.
    bool stop = false;                   // EndGroup was called with `stops`.
    // After EndGeneration: the first incarnation of the next generation. A shard that is restored refuses older starts,
    // too, and tells later ones to attach. 0: the generation has not ended.
    uint32_t successor = 0;
  };
  Groups CopyGroups() const ABSL_LOCKS_EXCLUDED(mutex_, book_mutex_);

  // Restores one block of a snapshot. Call RestoreBlock and RestoreState before any other thread sees the shard.
  // Lengths are those of CopyBlock and CopyGroups. Groups that had attached and not ended are awaited. A group that
  // does not return costs the others one grace window.
  void RestoreBlock(uint64_t block, BlockCopy copy);
  void RestoreState(const Groups& groups, uint64_t updates) ABSL_LOCKS_EXCLUDED(mutex_, book_mutex_);

 private:
  struct Block {
    // Lock order: Shard::mutex_, this mutex, then an AnswerWindow's or book_mutex_.
    mutable absl::Mutex mutex;
    std::vector<float> values ABSL_GUARDED_BY(mutex);
    std::vector<float> state ABSL_GUARDED_BY(mutex);
    std::vector<ExchangeId> applied ABSL_GUARDED_BY(mutex);
    std::vector<uint64_t> seen ABSL_GUARDED_BY(mutex);  // For each group: the version in its last answer.
    uint64_t updates ABSL_GUARDED_BY(mutex) = 0;        // Updates so far.
    // The turns whose contributions are in the book's queue, in the order of arrival.
    std::vector<Turn*> waiting ABSL_GUARDED_BY(mutex);
    // Under a bound on staleness: the turns that wait for slower groups, in the order of arrival.
    std::vector<Turn*> held ABSL_GUARDED_BY(mutex);
    // When this block must be looked at again; InfiniteFuture if no turn waits here.
    absl::Time look_at ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
  };
  // The turns that have ended under a block's mutex. Their continuations are called when no mutex is held any more.
  struct Ends {
    std::vector<std::pair<Turn*, absl::Status>> turns;  // They have left their block's queues.
    // Whether groups have come or gone, so that turns of any block may have to wait no longer.
    bool changes_groups = false;
  };

  // The blocks have no values and no state yet: call MakeValues and MakeState, or TakeOver.
  Shard(ShardPlan plan, std::unique_ptr<CenterRule> rule, std::shared_ptr<WaitClock> clock);
  enum class Memory { kOfItsOwn, kOfAnother, kValuesOfAnother };
  static absl::StatusOr<std::unique_ptr<Shard>> Make(ShardPlan plan, std::shared_ptr<WaitClock> clock, Memory values);
  void MakeValues();
  void MakeState();
  // Closes `before`, and takes over what Succeed describes.
  void TakeOver(Shard& before);
  // Takes a block away from a closed shard.
  BlockCopy HandOverBlock(uint64_t block);
  // Closes the shard. `successor` is the first incarnation of the generation that begins; 0: the job has ended.
  void CloseFor(uint32_t successor) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records the speaker's incarnation. INVALID_ARGUMENT and ABORTED as in Attach.
  absl::Status Admit(const Speaker& speaker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpen(const Speaker& speaker) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckExchange(const Exchange& exchange, uint64_t block) const;
  static absl::Status CheckFinite(uint32_t group, uint64_t first, absl::Span<const float> values);
  absl::Status CheckInitializer(const Speaker& speaker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOrder(const Turn& turn, const ExchangeId& last) const;
  // Returns OK if a turn may go on waiting. Otherwise returns the reason why it must not.
  absl::Status CheckWaiting(const Turn& turn) const;
  // As for Begin: nullopt means that the turn waits.
  std::optional<absl::Status> ApplyTurn(Turn& turn, Block& block, Ends& ends) ABSL_LOCKS_EXCLUDED(block.mutex);
  // Returns whether a group makes no step after step `sequence`. False for all steps if the rule does not step the
  // center.
  bool IsLastStep(uint64_t sequence) const;
  // True if the group has ended, so that other groups need not wait for it.
  bool LeaveAtEnd(const Turn& turn) ABSL_LOCKS_EXCLUDED(book_mutex_);
  std::optional<absl::Status> Repeat(Turn& turn, Block& block, Ends& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  std::optional<absl::Status> ApplyAtOnce(Turn& turn, Block& block, Ends& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  std::optional<absl::Status> ApplyInRound(Turn& turn, Block& block, Ends& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Answers the turn with the center, at once or when it need not wait for slower groups any more.
  std::optional<absl::Status> AnswerWithinBound(Turn& turn, Block& block, Ends& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  std::optional<absl::Status> AnswerUnlessHeld(absl::Time now, Turn& turn, Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Ends the turns of the block's queues that need not wait any longer.
  void LookAtBlock(uint64_t index, Ends& ends);
  void LookAtRound(absl::Time now, uint64_t index, Block& block, Ends& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Looks at the held turns that wait for `group`, or at all of them.
  void LookAtHeld(absl::Time now, std::optional<uint32_t> group, Block& block, Ends& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Has the block looked at again at `when` or before.
  void LookAgainBy(absl::Time when, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex)
      ABSL_LOCKS_EXCLUDED(look_mutex_);
  absl::Time LookAt(uint64_t index) const;
  // Looks at one block, calls Finish, and returns LookAt of the block.
  absl::Time LookAndFinish(uint64_t index);
  void LookAtAllBlocks(Ends& ends) ABSL_LOCKS_EXCLUDED(look_mutex_);
  // Looks at all blocks if groups have come or gone, then calls the continuations of all turns that have ended. Call it
  // without any lock.
  void Finish(Ends ends) ABSL_LOCKS_EXCLUDED(mutex_, book_mutex_);
  // Returns the groups that this turn must wait for under a bound on staleness.
  std::vector<uint32_t> Behind(const Turn& turn, const Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Applies the rule to the round of the block's waiting turns, and answers them. After an error all of them get the
  // error. Center and state are then as before, but the round has ended. Returns the status. All turns but `own` are
  // added to `ends`.
  absl::Status ApplyRound(const RoundBook::ClosedRound& round, const Turn* own, Block& block, Ends& ends)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  void EndReplaced(const Turn& by, Block& block, Ends& ends) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  bool IsLate(const Turn& turn, const Block& block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Returns whether the block of `turn` is the rank's first one on this server, or the first one of a fragment.
  bool BeginsAnExchange(const Turn& turn) const;
  // Returns the group's step at which the contribution of `turn` begins.
  uint64_t StepsFrom(const Turn& turn, const ExchangeId& last) const;
  uint32_t fragments() const { return std::max<uint32_t>(plan_.job.fragments(), 1); }
  // For ranks that exchange.
  size_t RankIndexOf(const Speaker& speaker) const { return size_t{speaker.group} * plan_.slices() + speaker.rank; }
  Contribution ContributionOf(const Turn& turn, const Block& block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Applies the rule to the block of `turn`, and uses `turn`'s answer as scratch memory. `live` is the number of live
  // groups in rounds, else 1. INVALID_ARGUMENT: the block would become infinite or NaN. Its values and state then stay
  // as they were.
  absl::Status Update(absl::Span<const Contribution> from, size_t live, const Turn& turn, Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Does Update's work in cases in which the result may be infinite or NaN.
  absl::Status ApplyWatched(absl::Span<const Contribution> from, const CenterBlock& center, const Turn& turn) const;
  void AnswerWithCenter(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  void NoteBegun(uint32_t group) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t LastSequence(uint32_t group) const;
  // Returns the number of passes over the data that the groups had done before step `step`; >= 1.
  double EpochBefore(uint64_t step) const;
  // Returns why the closed shard takes no more exchanges.
  absl::Status Ended() const;
  // Returns the window of the speaker's rank. Call it only under rules whose answers are kept.
  AnswerWindow& WindowOf(const Speaker& speaker) { return *windows_[RankIndexOf(speaker)]; }

  const ShardPlan plan_;
  const std::unique_ptr<CenterRule> rule_;
  const std::shared_ptr<WaitClock> clock_;
  ExchangeMeter meter_;
  std::shared_ptr<ServedExchanges> served_ = std::make_shared<ServedExchanges>();  // Set before others see the shard.
  const std::unique_ptr<Block[]> blocks_;
  std::vector<std::unique_ptr<AnswerWindow>> windows_;  // Indexed by group, then rank. Constant after construction.
  std::atomic<uint64_t> updates_{0};

  mutable absl::Mutex look_mutex_;  // Last in the lock order.
  // The earliest Block::look_at of all blocks, or an earlier time.
  absl::Time look_at_ ABSL_GUARDED_BY(look_mutex_) = absl::InfiniteFuture();
  // The earliest Block::look_at that was scheduled since the last look at all blocks began. Such a look schedules each
  // block again in which a turn still waits.
  absl::Time scheduled_ ABSL_GUARDED_BY(look_mutex_) = absl::InfiniteFuture();
  uint64_t looks_ ABSL_GUARDED_BY(look_mutex_) = 0;  // Looks at all blocks that have begun.

  // Guards the data of all groups and all blocks together. Last in the lock order.
  mutable absl::Mutex book_mutex_;
  RoundBook book_ ABSL_GUARDED_BY(book_mutex_);
  std::vector<GroupPace> paces_ ABSL_GUARDED_BY(book_mutex_);  // Indexed by group.
  // For each group: the incarnation for which EndGroup was called last; 0: none.
  std::vector<uint32_t> ended_ ABSL_GUARDED_BY(book_mutex_);
  bool stops_ ABSL_GUARDED_BY(book_mutex_) = false;  // The whole job is to stop.

  mutable absl::Mutex mutex_;
  AttachState attach_ ABSL_GUARDED_BY(mutex_);
  // For each group: the last incarnation that attached; 0: none. Written under mutex_, and also read without it.
  const std::unique_ptr<std::atomic<uint32_t>[]> incarnations_;
  struct Told {
    uint32_t incarnation = 0;
    AttachAnswer answer = AttachAnswer::kWait;
  };
  std::vector<Told> told_ ABSL_GUARDED_BY(mutex_);  // For each group: the last answer to Attach.
  // These are atomic, because exchanges read them without mutex_, so that exchanges of different blocks stay parallel.
  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> successor_{0};  // As in CloseFor. Written before closed_.
  std::atomic<bool> stopping_{false};
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_H_
