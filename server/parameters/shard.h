#ifndef HOOKE_SERVER_PARAMETERS_SHARD_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_H_

// One job's slice of the center on this server: its values, the rule that changes them, and what each group last did to
// each block.
//
// Knows no RPCs and files; waits go by the clock that it is given. Thread-safe; exchanges of different blocks run in
// parallel, exchanges of one block one after another. Used by ParameterStore, by the RPC handlers and by snapshots.
//
// Exactly once, while this process lives: per block and group the shard keeps which exchange it last applied. The same
// again changes nothing and gets the stored answer; or, by rules that answer with the center, the center. A shard that
// was restored from a snapshot knows no later exchange: its last_sequence is lower then than what was answered. Blocks
// are named by the index of their first value in the whole vector (`first`), as on the wire.
//
// Rules with rounds (algorithms/round.h): a group's thread waits in ApplyBlock until the block's round is complete, and
// whoever finds it complete applies the rule to what the waiting threads hold. So a round takes no memory, and what a
// thread takes away with it when it gives up has changed nothing.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/pace.h"
#include "algorithms/roster.h"
#include "algorithms/round.h"
#include "algorithms/update_rule.h"
#include "server/parameters/answer_window.h"
#include "server/parameters/attach.h"
#include "server/parameters/shard_plan.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

class Shard {
 public:
  // Takes the memory of the plan; all values are 0 and the center is not initialized. Waits in ApplyBlock go by
  // `clock`. RESOURCE_EXHAUSTED: the system has not that much memory; nothing is kept of it.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(
      ShardPlan plan, std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());

  const ShardPlan& plan() const { return plan_; }
  uint64_t blocks() const { return plan_.blocks.size(); }
  // Values [begin, end) of the whole vector that block `block` < blocks() of this shard holds.
  Range BlockRange(uint64_t block) const { return plan_.BlockRange(plan_.blocks.begin + block); }

  // Whether the center has all its values, and how many blocks groups have changed since it had: its version.
  bool initialized() const;
  uint64_t updates() const { return updates_.load(std::memory_order_acquire); }

  // The highest, over the blocks, of the sequences that a group exchanged them with; 0: none.
  uint64_t HighestSequence(uint32_t group) const;

  struct Attached {
    AttachAnswer answer = AttachAnswer::kWait;
    std::string reason;
    bool changed = true;         // Another answer than this incarnation of the group got last: worth a log line.
    uint64_t last_sequence = 0;  // The lowest over the blocks; the largest uint64 where the shard has no blocks.
  };
  // The only way to make an incarnation known here: who calls it has seen that the speaker has the job's key. ABORTED:
  // a later incarnation of the group has attached. INVALID_ARGUMENT: there is no such group, rank or incarnation.
  absl::StatusOr<Attached> Attach(absl::Time now, const Speaker& speaker, absl::Duration lease);

  // Notes how fast a group is (0: it has not measured), and says what it should know before an exchange: pace.h.
  // INVALID_ARGUMENT: the speed is no number. Else as ApplyBlock, of an exchange.
  struct Pace {
    uint32_t next_fragment = 0;
    double fastest_steps_per_second = 0;
  };
  absl::StatusOr<Pace> TellPace(absl::Time now, const Speaker& speaker, double steps_per_second);
  static constexpr absl::Duration kPaceMemory = absl::Minutes(10);

  // Initial values of one block. Only while `speaker` has the right to initialize, whose lease starts anew; otherwise
  // UNAVAILABLE (attach again).
  absl::Status WriteInitial(absl::Time now, const Speaker& speaker, uint64_t first, absl::Span<const float> values);
  // All blocks are written: the center has values from now on. OK and without effect where it has already.
  absl::Status CompleteInitialize(const Speaker& speaker);

  // Whether it may speak now: its incarnation is the last one that has attached. INVALID_ARGUMENT or ABORTED as Attach;
  // NOT_FOUND: a later one, which has not attached here.
  absl::Status CheckSpeaker(const Speaker& speaker) const;

  struct Exchange {
    Speaker speaker;
    uint64_t sequence = 0;  // >= 1.
    uint64_t first = 0;
  };
  // Applies the rule to one block, unless this exchange was applied to it before, and writes the answer, which has the
  // length of `values`. With rounds, or a bound on staleness, it waits for other groups, and for a dead one no longer
  // than the grace window. INVALID_ARGUMENT: the block, the sequence or a value is not allowed; or, of finite values,
  // the center would not be finite: then it stays as it was, for all groups of the round. ABORTED: a later
  // incarnation has attached. NOT_FOUND: the center has no values yet, or this incarnation has not attached here (after
  // a start from a snapshot that is older than it): attach. FAILED_PRECONDITION: closed. UNAVAILABLE:
  // the round had no quorum within kRoundTimeout beyond the grace window, the same exchange came again on another
  // stream, or the server stops: try again. After an error `answer` is unspecified, and the exchange, sent again, is
  // applied once.
  absl::Status ApplyBlock(const Exchange& exchange, absl::Span<const float> values, absl::Span<float> answer);
  static constexpr absl::Duration kRoundTimeout = absl::Seconds(10);

  // The job has ended: a block copied after this returned never changes again, so an exchange that was answered is in
  // every later copy. Whoever waits is told.
  void Close();
  // The server stops: whoever waits, now or later, gets UNAVAILABLE.
  void StopWaiting();

  // The index within the shard of the block that starts at `first` and has `values` values. INVALID_ARGUMENT naming the
  // nearest that is allowed.
  absl::StatusOr<uint64_t> FindBlock(uint64_t first, uint64_t values) const;

  // A consistent copy of one block. `block` < blocks().
  struct BlockCopy {
    std::vector<ExchangeId> applied;  // By group: the exchange it last applied.
    uint64_t version = 0;             // Updates so far.
    std::vector<float> values;
    std::vector<float> state;  // Of the rule: RuleTraits::state_values for each of the values.
  };
  BlockCopy CopyBlock(uint64_t block) const;
  // The highest incarnation of each group that has attached; 0: none.
  std::vector<uint32_t> Incarnations() const;

  // Puts a snapshot back; before any other thread sees the shard. Lengths are those of CopyBlock and Incarnations.
  // Groups that had come are awaited; one that will not come again costs the others one grace window.
  void RestoreBlock(uint64_t block, BlockCopy copy);
  void RestoreState(const std::vector<uint32_t>& incarnations, uint64_t updates);

 private:
  // With rounds, the first block of a rank's exchange, which is the first of its slice or of a fragment of it, settles
  // for all of the exchange whose round it is. If each block did, a group that joins while another is in the middle of
  // its slice would wait for that one at its first block, and that one for it at the block where it is.
  struct Pass {
    uint64_t number = 0;  // Grows.
    std::vector<uint32_t> groups;
    std::vector<uint32_t> live;  // LiveGroups.
  };
  // Where a rank's exchange belongs.
  struct Place {
    ExchangeId id;
    std::shared_ptr<const Pass> pass;  // Null: dropped.
  };
  // An exchange of a block as a thread works on it.
  struct Turn {
    Speaker speaker;
    ExchangeId id;
    uint64_t first = 0;
    uint64_t block = 0;  // Of the shard.
    absl::Span<const float> values;
    absl::Span<float> answer;
    bool moderate = false;  // All values are (algorithms/finite.h).
    // With rounds:
    // How the round has ended for the thread that waits. Set under the block's mutex by the thread that ended it, which
    // has also written the answer if this is OK.
    std::optional<absl::Status>* outcome = nullptr;
    bool opens = false;  // It is the first block of the exchange.
    std::optional<Place> place =
        std::nullopt;  // Of the others; none where the first block was exchanged before a restart.
  };
  struct Block {
    mutable absl::Mutex mutex;  // Taken before an AnswerWindow's and roster_mutex_, after mutex_.
    SteadyCondition changed;    // What a thread in ApplyBlock may wait for.
    std::vector<float> values ABSL_GUARDED_BY(mutex);
    std::vector<float> state ABSL_GUARDED_BY(mutex);
    std::vector<ExchangeId> applied ABSL_GUARDED_BY(mutex);
    std::vector<uint64_t> seen ABSL_GUARDED_BY(mutex);    // By group: the version it was last answered with.
    uint64_t version ABSL_GUARDED_BY(mutex) = 0;          // Updates so far.
    uint64_t pass ABSL_GUARDED_BY(mutex) = 0;             // The last one that had a round here.
    std::unique_ptr<Round> round ABSL_GUARDED_BY(mutex);  // Null by rules without.
    // Who waits for the round with the contribution that is in it; each is its thread's.
    std::vector<const Turn*> waiting ABSL_GUARDED_BY(mutex);
  };

  Shard(ShardPlan plan, std::unique_ptr<UpdateRule> rule, std::shared_ptr<WaitClock> clock);

  // Notes the speaker's incarnation. INVALID_ARGUMENT or ABORTED.
  absl::Status Admit(const Speaker& speaker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // INVALID_ARGUMENT: there is no such group, rank or incarnation.
  absl::Status CheckNumbers(const Speaker& speaker) const;
  absl::Status CheckOpen(const Speaker& speaker) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckExchange(const Exchange& exchange, uint64_t block) const;
  static absl::Status CheckFinite(uint32_t group, uint64_t first, absl::Span<const float> values);
  absl::Status CheckInitializer(const Speaker& speaker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOrder(const Turn& turn, const ExchangeId& last) const;
  // Why a thread must not go on waiting.
  absl::Status CheckWaiting(const Turn& turn) const;
  absl::Status ApplyTurn(const Turn& turn, Block& block) ABSL_LOCKS_EXCLUDED(block.mutex);
  // By rules that step the center: a group has no steps after this one.
  bool IsLastStep(uint64_t sequence) const;
  void LeaveAtEnd(const Turn& turn) ABSL_LOCKS_EXCLUDED(roster_mutex_);
  absl::Status Repeat(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  absl::Status ApplyAtOnce(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  absl::Status ApplyInRound(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  absl::Status AwaitSlower(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  absl::Status AwaitRound(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Why it could not be applied, which all who wait are told; then nothing has changed but that they wait no longer.
  absl::Status CompleteRound(const Turn& turn, const RoundDecision& decision, Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // It is empty again, and all who have waited for it look what became of it.
  void EndRound(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  std::vector<uint32_t> LiveGroups(const RoundDecision& decision, const Block& block) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  uint64_t PassBefore(const Turn& opener) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(roster_mutex_);
  std::shared_ptr<const Pass> OpenPass(const Block& block, std::vector<uint32_t> live)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Whether the group has attached, now or before the server was started again.
  bool HasCome(uint32_t group) const { return incarnations_[group] > 0; }
  void DismissMissing(const Turn& turn, const RoundDecision& decision, const Pass* opened);
  void LeaveRound(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  bool IsLate(const Turn& turn, const Block& block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  void FindPlace(Turn& turn) const;
  // The step from which a group's exchange of a block goes.
  uint64_t StepsFrom(const Turn& turn, const ExchangeId& last) const;
  uint32_t fragments() const { return std::max<uint32_t>(plan_.job.fragments(), 1); }
  void KeepPlace(const Turn& turn, std::shared_ptr<const Pass> pass);
  size_t SeatOf(const Speaker& speaker) const { return size_t{speaker.group} * plan_.job.ranks() + speaker.rank; }
  // Whether both wait for the same groups.
  static bool InSamePass(const Turn& one, const Turn& other);
  // Whether the round that this turn belongs to has been without it.
  bool IsLeftBehind(const Turn& turn, const Block& block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  bool IsToBeDropped(const Turn& turn, const Block& block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  RoundDecision DecideRound(const Turn& turn, const Block& block, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  Contribution ContributionOf(const Turn& turn, const Block& block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // Applies the rule to the block of `turn`, whose answer is the place to compute in. In rounds: of `live` groups.
  // INVALID_ARGUMENT: the block would not be finite; it, and its state, are as they were.
  absl::Status Update(absl::Span<const Contribution> from, size_t live, const Turn& turn, Block& block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  // The same for rules that may leave what is not finite.
  absl::Status ApplyWatched(absl::Span<const Contribution> from, const CenterBlock& center, const Turn& turn) const;
  void AnswerWithCenter(const Turn& turn, Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex);
  void NoteBegun(uint32_t group) ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeAll() ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t LastSequence(uint32_t group) const;
  absl::Status Ended() const;
  // By rules whose answers are kept.
  AnswerWindow& WindowOf(const Speaker& speaker) { return *windows_[SeatOf(speaker)]; }

  const ShardPlan plan_;
  const std::unique_ptr<UpdateRule> rule_;
  const std::shared_ptr<WaitClock> clock_;
  const std::unique_ptr<Block[]> blocks_;
  std::vector<std::unique_ptr<AnswerWindow>> windows_;  // By group, then rank. Constant after construction.
  std::atomic<uint64_t> updates_{0};

  // Who waits for whom. Taken last.
  mutable absl::Mutex roster_mutex_;
  Roster roster_ ABSL_GUARDED_BY(roster_mutex_);
  std::vector<Place> places_ ABSL_GUARDED_BY(roster_mutex_);  // By group, then rank; with rounds.
  uint64_t passes_ ABSL_GUARDED_BY(roster_mutex_) = 0;
  // By group: the pass in which it was last waited for in vain.
  std::vector<uint64_t> dismissed_ ABSL_GUARDED_BY(roster_mutex_);
  // By group: where its incarnation began, and after which pass.
  struct Begun {
    ExchangeId id;
    uint64_t pass = 0;
  };
  std::vector<Begun> begun_ ABSL_GUARDED_BY(roster_mutex_);
  std::vector<GroupPace> paces_ ABSL_GUARDED_BY(roster_mutex_);  // By group.

  mutable absl::Mutex mutex_;
  AttachState attach_ ABSL_GUARDED_BY(mutex_);
  // By group: the last one that attached; 0: none. Set under mutex_; read, too, by who waits, under a block's mutex.
  const std::unique_ptr<std::atomic<uint32_t>[]> incarnations_;
  struct Told {
    uint32_t incarnation = 0;
    AttachAnswer answer = AttachAnswer::kWait;
  };
  std::vector<Told> told_ ABSL_GUARDED_BY(mutex_);  // By group: the last answer to Attach.
  // Set under mutex_; read under it or under a block's mutex, so that exchanges of different blocks stay parallel.
  std::atomic<bool> closed_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_H_
