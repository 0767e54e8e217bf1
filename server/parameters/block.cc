#include "server/parameters/block.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/finite.h"
#include "server/parameters/attach.h"

namespace hooke {

Block::Block(const Place& place, uint32_t groups, uint64_t first_step)
    : place_(place), applied_(groups, ExchangeId{0, first_step}), seen_(groups, 0) {}

uint64_t Block::Staleness(uint32_t group, uint32_t incarnation) const {
  return applied_[group].incarnation == incarnation ? updates_ - seen_[group] : 0;
}

absl::Status Block::CheckNext(uint32_t group, const ExchangeId& exchange) const {
  const ExchangeId& last = applied_[group];
  if (last < exchange) return absl::OkStatus();
  if (exchange.incarnation < last.incarnation) return Replaced(group, exchange.incarnation, last.incarnation);
  return absl::InvalidArgumentError(absl::StrCat("sequence ", exchange.sequence, " of group ", group,
                                                 " comes after sequence ", last.sequence, " at value ", place_.first,
                                                 "; sequences grow within an incarnation"));
}

absl::Status Block::Apply(const CenterRule& rule, const Change& change, absl::Span<float> answer) {
  CenterBlock center;
  center.values = absl::MakeSpan(values_);
  center.state = absl::MakeSpan(state_);
  center.parameters = place_.parameters;
  center.update = updates_ + 1;
  center.epoch = change.epoch;
  center.whole = change.whole;
  if (rule.traits().averages && change.moderate && AllModerate(values_)) {
    rule.Apply(change.from, center, answer);
  } else if (absl::Status status = ApplyWatched(rule, change, center, answer); !status.ok()) {
    return status;
  }
  ++updates_;
  return absl::OkStatus();
}

// Applies the rule, and restores the block if the result is not finite. Even finite contributions can make the center
// infinite, which would spoil all groups for good. So the block is copied first. The copy is cheap: the block is in the
// cache, and an optimizer's step reads and writes more than the copy does.
absl::Status Block::ApplyWatched(const CenterRule& rule, const Change& change, const CenterBlock& center,
                                 absl::Span<float> answer) const {
  const std::vector<float> values(center.values.begin(), center.values.end());
  const std::vector<float> state(center.state.begin(), center.state.end());
  rule.Apply(change.from, center, answer);
  const bool good_answer = rule.traits().answers_center || AllFinite(answer);
  if (good_answer && AllFinite(center.values) && AllFinite(center.state)) return absl::OkStatus();
  const auto bad =
      std::find_if_not(center.values.begin(), center.values.end(), [](float value) { return std::isfinite(value); });
  const std::string what =
      bad != center.values.end()
          ? absl::StrCat("value ", place_.first + (bad - center.values.begin()), " ", *bad)
          : absl::StrCat("the state of the block at value ", place_.first, " infinite or not a number");
  std::copy(values.begin(), values.end(), center.values.begin());
  std::copy(state.begin(), state.end(), center.state.begin());
  constexpr size_t kNamed = 4;  // At most this many groups are named, because a gRPC status has little room.
  const auto name = [](std::string* out, const Contribution& each) { absl::StrAppend(out, each.group); };
  const std::string more =
      change.from.size() > kNamed ? absl::StrCat(" and ", change.from.size() - kNamed, " more") : "";
  return absl::InvalidArgumentError(
      absl::StrCat("what group ", absl::StrJoin(change.from.subspan(0, kNamed), " and group ", name), more,
                   " sent would make, in the center of job ", change.job_id, ", ", what,
                   "; the center stays as it was (has training diverged? lower the learning rate)"));
}

void Block::Answer(uint32_t group, absl::Span<float> answer) {
  std::copy(values_.begin(), values_.end(), answer.begin());
  NoteSeen(group);
}

void Block::WriteInitial(absl::Span<const float> values) { std::copy(values.begin(), values.end(), values_.begin()); }

absl::Status Block::WriteBack(uint32_t group, const ExchangeId& exchange, absl::Span<const float> values) {
  const ExchangeId& last = applied_[group];
  if (exchange.incarnation < last.incarnation) return Replaced(group, exchange.incarnation, last.incarnation);
  if (exchange.incarnation == last.incarnation && !(exchange == last)) {
    return absl::FailedPreconditionError(absl::StrCat("start ", exchange.incarnation, " of group ", group,
                                                      " has exchanged the block at value ", place_.first,
                                                      " already; a block can be written back only before that"));
  }
  std::copy(values.begin(), values.end(), values_.begin());
  ++updates_;
  NoteApplied(group, exchange);
  NoteSeen(group);
  return absl::OkStatus();
}

void Block::Restore(BlockCopy copy) {
  applied_ = std::move(copy.applied);
  GoOn(std::move(copy), /*with_state=*/true);
}

BlockCopy Block::HandOver() { return {{}, updates_, std::exchange(values_, {}), std::exchange(state_, {})}; }

void Block::GoOn(BlockCopy before, bool with_state) {
  values_ = std::move(before.values);
  if (with_state) state_ = std::move(before.state);
  updates_ = before.updates;
  std::fill(seen_.begin(), seen_.end(), updates_);
}

absl::Status CheckFinite(uint32_t group, uint64_t first, absl::Span<const float> values) {
  if (AllFinite(values)) return absl::OkStatus();
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  return absl::InvalidArgumentError(absl::StrCat("group ", group, " sent ", *bad, " for value ",
                                                 first + (bad - values.begin()),
                                                 " of the center; values are finite (has its training diverged?)"));
}

}  // namespace hooke
