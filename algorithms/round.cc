#include "algorithms/round.h"

#include <algorithm>
#include <utility>

namespace hooke {
namespace {

bool IsBefore(const Contribution& contribution, uint32_t group) { return contribution.group < group; }

RoundDecision Complete(const char* reason, std::vector<uint32_t> missing) {
  return {true, absl::InfiniteFuture(), std::move(missing), reason};
}

RoundDecision Incomplete(const char* reason, absl::Time again) { return {false, again, {}, reason}; }

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
  if (contributions_.empty()) {
    Take();
    return;
  }
  if (contributions_.size() < needed()) quorum_since_ = absl::InfiniteFuture();
}

bool Round::Has(uint32_t group) const {
  const auto at = std::lower_bound(contributions_.begin(), contributions_.end(), group, IsBefore);
  return at != contributions_.end() && at->group == group;
}

RoundDecision Round::Decide(absl::Time now, const Roster& roster) const {
  // Once groups have ended, the quorum may be all that remain. Then none of them is missing and no grace window runs.
  const uint32_t quorum = std::min(needed(), roster.remaining());
  if (contributions_.empty() || contributions_.size() < quorum) {
    return Incomplete("fewer groups than the quorum have contributed", absl::InfiniteFuture());
  }
  const bool grace_has_passed = now >= quorum_since_ + options_.grace;
  if (grace_has_passed || contributions_.size() >= roster.awaited()) {
    std::vector<uint32_t> missing;
    auto next = contributions_.begin();  // Contributions and groups ascend, so one pass suffices.
    for (uint32_t group = 0; group < roster.groups(); ++group) {
      const bool has = next != contributions_.end() && next->group == group;
      if (has) ++next;
      if (!has && roster.Awaits(group)) missing.push_back(group);
    }
    if (missing.empty()) return Complete("all awaited groups have contributed", {});
    if (grace_has_passed) {
      return Complete("enough groups have contributed and the grace window has passed", std::move(missing));
    }
  }
  return Incomplete("enough groups have contributed; others have until the grace window ends",
                    quorum_since_ + options_.grace);
}

RoundDecision Round::DecideAmong(absl::Span<const uint32_t> groups, uint32_t awaited, absl::Time now,
                                 const Roster& roster) const {
  const bool grace_has_passed = now >= since_ + options_.grace;
  if (grace_has_passed || contributions_.size() >= awaited) {
    std::vector<uint32_t> missing;
    auto next = contributions_.begin();
    for (const uint32_t group : groups) {
      while (next != contributions_.end() && next->group < group) ++next;
      const bool has = next != contributions_.end() && next->group == group;
      if (!has && roster.Awaits(group)) missing.push_back(group);
    }
    if (missing.empty()) return Complete("all groups whose round it is have contributed", {});
    if (grace_has_passed) return Complete("the grace window has passed", std::move(missing));
  }
  return Incomplete("groups whose round it is have until the grace window ends", since_ + options_.grace);
}

std::vector<Contribution> Round::Take() {
  since_ = absl::InfiniteFuture();
  quorum_since_ = absl::InfiniteFuture();
  return std::exchange(contributions_, {});
}

}  // namespace hooke
