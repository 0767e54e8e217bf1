#include "algorithms/round.h"

#include <algorithm>

namespace hooke {
namespace {

bool IsBefore(const Contribution& contribution, uint32_t group) { return contribution.group < group; }

}  // namespace

void Round::Add(absl::Time now, const Contribution& from) {
  const auto at = std::lower_bound(contributions_.begin(), contributions_.end(), from.group, IsBefore);
  if (at != contributions_.end() && at->group == from.group) {
    *at = from;
    return;
  }
  if (contributions_.empty()) since_ = now;
  contributions_.insert(at, from);
  if (contributions_.size() == needed()) quorum_since_ = now;
}

void Round::Withdraw(uint32_t group) {
  const auto at = std::lower_bound(contributions_.begin(), contributions_.end(), group, IsBefore);
  if (at == contributions_.end() || at->group != group) return;
  contributions_.erase(at);
  if (contributions_.empty()) return Clear();
  if (contributions_.size() < needed()) quorum_since_ = absl::InfiniteFuture();
}

bool Round::Has(uint32_t group) const {
  const auto at = std::lower_bound(contributions_.begin(), contributions_.end(), group, IsBefore);
  return at != contributions_.end() && at->group == group;
}

RoundDecision Round::Decide(absl::Time now, const Roster& roster) const {
  RoundDecision decision;
  auto next = contributions_.begin();  // Contributions and groups ascend, so one pass suffices.
  for (uint32_t group = 0; group < roster.groups(); ++group) {
    const bool has = next != contributions_.end() && next->group == group;
    if (has) ++next;
    if (!has && roster.Awaits(group)) decision.missing.push_back(group);
  }
  // Once groups have ended, the quorum may be all that remain. Then none of them is missing and no grace window runs.
  const uint32_t quorum = std::min(needed(), roster.remaining());
  if (contributions_.empty() || contributions_.size() < quorum) {
    decision.reason = "fewer groups than the quorum have contributed";
  } else if (decision.missing.empty()) {
    decision.complete = true;
    decision.reason = "all awaited groups have contributed";
  } else if (now >= quorum_since_ + options_.grace) {
    decision.complete = true;
    decision.reason = "enough groups have contributed and the grace window has passed";
  } else {
    decision.again = quorum_since_ + options_.grace;
    decision.reason = "enough groups have contributed; others have until the grace window ends";
  }
  return decision;
}

RoundDecision Round::DecideAmong(absl::Span<const uint32_t> groups, absl::Time now, const Roster& roster) const {
  RoundDecision decision;
  auto next = contributions_.begin();
  for (const uint32_t group : groups) {
    while (next != contributions_.end() && next->group < group) ++next;
    const bool has = next != contributions_.end() && next->group == group;
    if (!has && roster.Awaits(group)) decision.missing.push_back(group);
  }
  if (decision.missing.empty()) {
    decision.complete = true;
    decision.reason = "all groups whose round it is have contributed";
  } else if (now >= since_ + options_.grace) {
    decision.complete = true;
    decision.reason = "the grace window has passed";
  } else {
    decision.again = since_ + options_.grace;
    decision.reason = "groups whose round it is have until the grace window ends";
  }
  return decision;
}

void Round::Clear() {
  contributions_ = std::vector<Contribution>();  // Frees the memory; clear() would keep it.
  since_ = absl::InfiniteFuture();
  quorum_since_ = absl::InfiniteFuture();
}

}  // namespace hooke
