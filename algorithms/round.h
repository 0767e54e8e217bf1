#ifndef HOOKE_ALGORITHMS_ROUND_H_
#define HOOKE_ALGORITHMS_ROUND_H_

// One synchronous aggregation of one block: whose contributions are there, and whether that is enough.
//
// A round is complete when every group that is awaited (roster.h) has contributed, or when the grace window has passed
// for those that have not. The window begins with the first contribution; with a quorum, once so many groups have
// contributed: the groups beyond it are backups (Chen et al., arXiv 1604.00981). Groups that have ended are not missed
// in the quorum: where fewer remain, all that do are one. A late or dead group never hangs a round without a quorum.
// Pure: every method takes the time; no threads, no values copied.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/roster.h"
#include "algorithms/update_rule.h"

namespace hooke {

struct RoundOptions {
  // Without so many groups no round is complete. 0: one is enough, and all groups of the job are awaited before they
  // have come (Roster::ExpectAll).
  uint32_t quorum = 0;
  absl::Duration grace = absl::Seconds(5);
};

struct RoundDecision {
  bool complete = false;
  absl::Time again = absl::InfiniteFuture();  // When time alone changes the decision.
  std::vector<uint32_t> missing;              // Groups that are awaited and have not contributed.
  const char* reason = "";                    // Always set.
};

class Round {
 public:
  explicit Round(const RoundOptions& options) : options_(options) {}

  // The contribution of a group, instead of one that it made before: what it holds is the sender's until the round is
  // cleared or the contribution is withdrawn.
  void Add(absl::Time now, const Contribution& from);
  // No effect where the group has made none.
  void Withdraw(uint32_t group);

  bool Has(uint32_t group) const;
  // Ascending by group.
  const std::vector<Contribution>& contributions() const { return contributions_; }

  RoundDecision Decide(absl::Time now, const Roster& roster) const;
  // The same, where it is settled whose round it is: of those `groups` that are awaited all must have contributed, or
  // the grace window after the first contribution have passed. There is no quorum: it was there when that was settled.
  RoundDecision DecideAmong(absl::Span<const uint32_t> groups, absl::Time now, const Roster& roster) const;

  // The next round begins. One without contributions holds no memory: a server has one for each block.
  void Clear();

 private:
  // How many groups must have contributed before the grace window begins.
  uint32_t needed() const { return std::max<uint32_t>(options_.quorum, 1); }

  RoundOptions options_;
  std::vector<Contribution> contributions_;
  absl::Time since_ = absl::InfiniteFuture();         // When the first one contributed.
  absl::Time quorum_since_ = absl::InfiniteFuture();  // When so many had.
};

}  // namespace hooke

#endif  // HOOKE_ALGORITHMS_ROUND_H_
