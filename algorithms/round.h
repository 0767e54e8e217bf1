#ifndef HOOKE_ALGORITHMS_ROUND_H_
#define HOOKE_ALGORITHMS_ROUND_H_

// One synchronous aggregation of one block: the contributions so far, and whether they are enough.
//
// A round is complete when `quorum` groups and every awaited group (roster.h) have contributed, or when the grace
// window of the missing groups has passed. The window begins once `quorum` groups have contributed, or with the first
// contribution if there is no quorum. Groups beyond the quorum are backups (Chen et al., arXiv 1604.00981). If fewer
// groups remain than the quorum, all that remain are enough. Without a quorum a late or dead group never hangs a round.
//
// Pure: the caller passes the time; there are no threads, and no values are copied.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/center_rule.h"
#include "algorithms/roster.h"

namespace hooke {

struct RoundOptions {
  // The fewest groups with which a round is complete. If fewer groups remain in the job, all of these are enough. 0:
  // one group is enough, and all groups of the job are awaited from the start (Roster::ExpectAll).
  uint32_t quorum = 0;
  absl::Duration grace = absl::Seconds(5);
};

struct RoundDecision {
  bool complete = false;
  // When to decide again, if nothing else happens. InfiniteFuture: time does not change the decision.
  absl::Time again = absl::InfiniteFuture();
  std::vector<uint32_t> missing;  // If complete: the groups that were awaited and have not contributed; ascending.
  const char* reason = "";        // Always set.
};

class Round {
 public:
  explicit Round(const RoundOptions& options) : options_(options) {}

  // Adds a contribution, or replaces the group's earlier one. The sender keeps `from.values` alive until the round is
  // cleared or the contribution is withdrawn.
  void Add(absl::Time now, const Contribution& from);
  // Removes the group's contribution, if it has made one.
  void Withdraw(uint32_t group);

  bool Has(uint32_t group) const;
  // Ascending by group.
  const std::vector<Contribution>& contributions() const { return contributions_; }

  // Both decisions look through the groups only if so many have contributed that all may be there, or if the grace
  // window has passed. So the arrivals of a round together cost as much as one look, not one look each.
  RoundDecision Decide(absl::Time now, const Roster& roster) const;
  // Decides for a round in which only `groups` take part. `groups` ascends, and `awaited` is the number of them that
  // the roster awaits. The round is complete when all awaited ones of `groups` have contributed, or when the grace
  // window after the first contribution has passed. The quorum plays no part, because it was checked when `groups` were
  // chosen.
  RoundDecision DecideAmong(absl::Span<const uint32_t> groups, uint32_t awaited, absl::Time now,
                            const Roster& roster) const;

  // Returns the contributions and begins the next round. No memory stays taken, because a server has a Round for each
  // block.
  std::vector<Contribution> Take();

 private:
  // How many groups must have contributed before the grace window begins.
  uint32_t needed() const { return std::max<uint32_t>(options_.quorum, 1); }

  RoundOptions options_;
  std::vector<Contribution> contributions_;
  absl::Time since_ = absl::InfiniteFuture();         // When the first group contributed.
  absl::Time quorum_since_ = absl::InfiniteFuture();  // When needed() groups had contributed.
};

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_ROUND_H_
