#ifndef HOOKE_SERVER_PARAMETERS_SHARD_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_H_

// One job's slice of the center on this server: its values, the rule that changes them, and what each group last did to
// each block.
//
// Knows no RPCs, clocks or files. Thread-safe; exchanges of different blocks run in parallel, exchanges of one block
// one after another. Used by ParameterStore, by the RPC handlers and by snapshots.
//
// Exactly once: per block and group the shard keeps which exchange it last applied. The same again changes nothing and
// gets the stored answer. Blocks are named by the index of their first value in the whole vector (`first`), as on the
// wire.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/update_rule.h"
#include "server/parameters/answer_window.h"
#include "server/parameters/attach.h"
#include "server/parameters/shard_plan.h"

namespace hooke {

class Shard {
 public:
  // Takes the memory of the plan; all values are 0 and the center is not initialized. RESOURCE_EXHAUSTED: the system
  // has not that much memory; nothing is kept of it.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(ShardPlan plan);

  const ShardPlan& plan() const { return plan_; }
  uint64_t blocks() const { return plan_.blocks.size(); }
  // Values [begin, end) of the whole vector that block `block` < blocks() of this shard holds.
  Range BlockRange(uint64_t block) const { return plan_.BlockRange(plan_.blocks.begin + block); }

  // Whether the center has all its values, and how many blocks groups have changed since it had: its version.
  bool initialized() const;
  uint64_t updates() const { return updates_.load(std::memory_order_acquire); }

  struct Attached {
    AttachAnswer answer = AttachAnswer::kWait;
    std::string reason;
    bool changed = true;         // Another answer than this incarnation of the group got last: worth a log line.
    uint64_t last_sequence = 0;  // The lowest over the blocks; the largest uint64 where the shard has no blocks.
  };
  // ABORTED: a later incarnation of the group has spoken. INVALID_ARGUMENT: there is no such group, rank or
  // incarnation.
  absl::StatusOr<Attached> Attach(absl::Time now, const Speaker& speaker, absl::Duration lease);

  // Initial values of one block. Only while `speaker` has the right to initialize, whose lease starts anew; otherwise
  // UNAVAILABLE (attach again).
  absl::Status WriteInitial(absl::Time now, const Speaker& speaker, uint64_t first, absl::Span<const float> values);
  // All blocks are written: the center has values from now on. OK and without effect where it has already.
  absl::Status CompleteInitialize(const Speaker& speaker);

  struct Exchange {
    Speaker speaker;
    uint64_t sequence = 0;  // >= 1.
    uint64_t first = 0;
  };
  // Applies the rule to one block, unless this exchange was applied to it before, and writes the answer, which has the
  // length of `values`. INVALID_ARGUMENT: the block, the sequence or a value is not allowed. ABORTED: a later
  // incarnation has spoken. NOT_FOUND: the center has no values yet (attach). FAILED_PRECONDITION: closed. After an
  // error the center is unchanged and `answer` unspecified.
  absl::Status ApplyBlock(const Exchange& exchange, absl::Span<const float> values, absl::Span<float> answer);

  // The job has ended: a block copied after this returned never changes again, so an exchange that was answered is in
  // every later copy.
  void Close();

  // The index within the shard of the block that starts at `first` and has `values` values. INVALID_ARGUMENT naming the
  // nearest that is allowed.
  absl::StatusOr<uint64_t> FindBlock(uint64_t first, uint64_t values) const;

  // A consistent copy of one block. `block` < blocks().
  struct BlockCopy {
    std::vector<ExchangeId> applied;  // By group: the exchange it last applied.
    std::vector<float> values;
  };
  BlockCopy CopyBlock(uint64_t block) const;
  // The highest incarnation seen of each group; 0: none.
  std::vector<uint32_t> Incarnations() const;

  // Puts a snapshot back; before any other thread sees the shard. Lengths are those of CopyBlock and Incarnations.
  void RestoreBlock(uint64_t block, BlockCopy copy);
  void RestoreState(std::vector<uint32_t> incarnations, uint64_t updates);

 private:
  struct Block {
    mutable absl::Mutex mutex;  // Taken before an AnswerWindow's, after mutex_.
    std::vector<float> values ABSL_GUARDED_BY(mutex);
    std::vector<ExchangeId> applied ABSL_GUARDED_BY(mutex);
  };

  Shard(ShardPlan plan, std::unique_ptr<UpdateRule> rule);

  // Notes the speaker's incarnation. INVALID_ARGUMENT or ABORTED.
  absl::Status Admit(const Speaker& speaker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckExchange(const Exchange& exchange, uint64_t block, absl::Span<const float> values) const;
  absl::Status CheckInitializer(const Speaker& speaker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  uint64_t LastSequence(uint32_t group) const;
  absl::Status Ended() const;
  AnswerWindow& WindowOf(const Speaker& speaker) { return *windows_[speaker.group * plan_.job.ranks() + speaker.rank]; }

  const ShardPlan plan_;
  const std::unique_ptr<UpdateRule> rule_;
  const std::unique_ptr<Block[]> blocks_;
  std::vector<std::unique_ptr<AnswerWindow>> windows_;  // By group, then rank. Constant after construction.
  std::atomic<uint64_t> updates_{0};

  mutable absl::Mutex mutex_;
  AttachState attach_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> incarnations_ ABSL_GUARDED_BY(mutex_);  // By group; 0: none seen.
  struct Told {
    uint32_t incarnation = 0;
    AttachAnswer answer = AttachAnswer::kWait;
  };
  std::vector<Told> told_ ABSL_GUARDED_BY(mutex_);  // By group: the last answer to Attach.
  // Set under mutex_; read under it or under a block's mutex, so that exchanges of different blocks stay parallel.
  std::atomic<bool> closed_{false};
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_H_
