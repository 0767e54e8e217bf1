#ifndef HOOKE_SERVER_PARAMETERS_BLOCK_H_
#define HOOKE_SERVER_PARAMETERS_BLOCK_H_

// A block of the center: its values, the state that the rule keeps for them, and the record of each group's exchanges.
//
// The record says which exchange of a group was applied last, and which update of the block the group's copy has. So a
// repeat can be told from a new exchange, and a contribution from an old copy is known to be stale.
//
// A block knows no waits, no rounds and no right to speak: its owner decides what is applied, and when. Not
// thread-safe.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "algorithms/center_rule.h"
#include "server/parameters/answer_window.h"

namespace hooke {

// A copy of a block, for a snapshot or for another block.
struct BlockCopy {
  std::vector<ExchangeId> applied;  // For each group: its exchange that was applied last to this block.
  uint64_t updates = 0;             // Updates so far.
  std::vector<float> values;
  std::vector<float> state;  // The rule's state: RuleTraits::state_values floats per value.
};

class Block {
 public:
  struct Place {
    uint64_t first = 0;       // The index of the first value in the whole vector.
    uint64_t size = 0;        // How many values the block has.
    uint64_t parameters = 0;  // How many of them are parameters of the model. They come first; buffers follow.
  };
  Block() = default;  // For arrays: assign another block to it.
  // Every group is at step `first_step`. The block has no values and no state yet: call MakeValues and MakeState,
  // Restore or GoOn.
  Block(const Place& place, uint32_t groups, uint64_t first_step);
  void MakeValues() { values_.assign(place_.size, 0.0f); }
  void MakeState(uint32_t state_values) { state_.assign(place_.size * state_values, 0.0f); }

  const ExchangeId& applied(uint32_t group) const { return applied_[group]; }
  uint64_t updates() const { return updates_; }
  // For each group: the update that its copy of the block has.
  absl::Span<const uint64_t> seen() const { return seen_; }
  // Returns how many updates a contribution of this incarnation has missed. 0 if the incarnation's first exchange of
  // the block is still to come: it read the center outside of exchanges, so the version of its copy is not known.
  uint64_t Staleness(uint32_t group, uint32_t incarnation) const;

  // Checks that an exchange comes after the group's last one here. ABORTED: a later incarnation has exchanged the
  // block. INVALID_ARGUMENT: the exchange is older than the last one. Ask about repeats before.
  absl::Status CheckNext(uint32_t group, const ExchangeId& exchange) const;

  struct Change {
    absl::Span<const Contribution> from;  // As in CenterRule::Apply.
    WholeRound whole;
    double epoch = 0;          // As in CenterBlock.
    bool moderate = false;     // `from` has one contribution, and its values are AllModerate (algorithms/finite.h).
    absl::string_view job_id;  // For messages.
  };
  // Applies the rule, and counts an update. `answer` gets the rule's answer. INVALID_ARGUMENT: the block, its state or
  // the answer would become infinite or NaN; the block stays as it was. Record applied exchanges with NoteApplied.
  absl::Status Apply(const CenterRule& rule, const Change& change, absl::Span<float> answer);
  // Records that the group's exchange was applied or dropped, so that it is not applied again.
  void NoteApplied(uint32_t group, const ExchangeId& exchange) { applied_[group] = exchange; }
  // Answers the group with the block's values. Its copy has all updates then.
  void Answer(uint32_t group, absl::Span<float> answer);
  // Records that the group is about to read the block.
  void NoteSeen(uint32_t group) { seen_[group] = updates_; }

  // Writes the initial values.
  void WriteInitial(absl::Span<const float> values);
  // Writes the block as the group had it after exchange `exchange`, from which this incarnation goes on. An exchange of
  // an earlier incarnation is refused from then on. ABORTED: a later incarnation has exchanged the block.
  // FAILED_PRECONDITION: this incarnation has exchanged it already.
  absl::Status WriteBack(uint32_t group, const ExchangeId& exchange, absl::Span<const float> values);

  BlockCopy Copy() const { return {applied_, updates_, values_, state_}; }
  // Becomes the block of a snapshot. The snapshot does not tell which updates each group has seen, so no group counts
  // as late.
  void Restore(BlockCopy copy);
  // Gives away the memory of values and state, for GoOn of another block. The copy names no exchanges.
  BlockCopy HandOver();
  // Goes on with the values and the count of updates of a block whose groups were others, and with its state if
  // `with_state`. All groups begin with the present values.
  void GoOn(BlockCopy before, bool with_state);

 private:
  absl::Status ApplyWatched(const CenterRule& rule, const Change& change, const CenterBlock& center,
                            absl::Span<float> answer) const;

  Place place_;
  std::vector<float> values_;
  std::vector<float> state_;
  std::vector<ExchangeId> applied_;  // Indexed by group.
  std::vector<uint64_t> seen_;       // Indexed by group.
  uint64_t updates_ = 0;
};

// Checks that a group's values for the block that starts at `first` are finite. INVALID_ARGUMENT names the first one
// that is not. A group that diverged must not spoil the center, and with it all other groups.
absl::Status CheckFinite(uint32_t group, uint64_t first, absl::Span<const float> values);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_BLOCK_H_
