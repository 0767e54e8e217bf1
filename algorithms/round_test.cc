#include "algorithms/round.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/roster.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using Groups = std::vector<uint32_t>;

const absl::Time kStart = absl::UnixEpoch();

Contribution Of(uint32_t group, absl::Span<const float> values = {}) {
  Contribution from;
  from.group = group;
  from.values = values;
  return from;
}

// A round: its groups, their contributions, and the expected decision at time `now`. Times are seconds; -1 means never.
struct Case {
  const char* name;
  std::vector<uint32_t> awaited;
  std::vector<uint32_t> contributed;  // The first at second 0, then one each second.
  uint32_t quorum;
  int grace;
  int now;
  bool complete;
  int again;
  std::vector<uint32_t> missing;  // If complete.
  std::vector<uint32_t> ended = {};
};

const Case kCases[] = {
    {"nobody yet", {0, 1}, {}, 1, 5, 0, false, -1, {}},
    {"all of them", {0, 1, 2}, {2, 0, 1}, 1, 5, 2, true, -1, {}},
    {"one missing, within grace of the first", {0, 1, 2}, {2, 0}, 1, 5, 4, false, 5, {}},
    {"one missing, grace has passed", {0, 1, 2}, {2, 0}, 1, 5, 5, true, -1, {1}},
    {"grace counts from the quorum", {0, 1, 2}, {2, 0}, 2, 5, 5, false, 6, {}},
    {"quorum and grace", {0, 1, 2}, {2, 0}, 2, 5, 6, true, -1, {1}},
    {"backup groups: no grace", {0, 1, 2, 3}, {0, 1, 3}, 3, 0, 2, true, -1, {2}},
    {"no quorum, however long", {0, 1, 2}, {2}, 2, 5, 1000, false, -1, {}},
    {"nobody awaits the others", {0}, {0}, 1, 5, 0, true, -1, {}},
    {"a group that is not awaited counts, too", {0}, {1}, 1, 5, 1, false, 5, {}},
    {"all awaited are fewer than the quorum", {0}, {0}, 2, 5, 1000, false, -1, {}},
    {"all that remain are fewer than the quorum", {0, 1}, {1, 0}, 3, 5, 1, true, -1, {}, {2, 3}},
    {"one that remains is missing", {0, 1}, {1}, 3, 5, 1000, false, -1, {}, {2, 3}},
    {"one that remains is dead: no quorum", {1}, {1}, 3, 5, 1000, false, -1, {}, {2, 3}},
    {"a quorum remains", {0, 1, 2}, {1, 0}, 2, 5, 4, false, 6, {}, {3}},
    {"all that live: one missing, within grace of the first", {0, 1, 2}, {2, 0}, 0, 5, 4, false, 5, {}},
    {"all that live: grace has passed", {0, 1, 2}, {2, 0}, 0, 5, 5, true, -1, {1}},
    {"all that live: one has ended", {0, 1}, {1, 0}, 0, 5, 1, true, -1, {}, {2, 3}},
    {"all that live, of whom nobody has sent", {0}, {}, 0, 5, 1000, false, -1, {}},
    {"nobody remains", {}, {}, 1, 5, 1000, false, -1, {}, {0, 1, 2, 3}},
};

// A round needs a quorum, or all groups that remain if these are fewer. Then it is complete with all awaited groups, or
// after the grace window.
TEST(Round, IsCompleteWithAllOrWithAQuorumAfterTheGraceWindow) {
  for (const Case& c : kCases) {
    Roster roster(4);
    for (const uint32_t group : c.awaited) roster.Enter(group, 0);
    for (const uint32_t group : c.ended) roster.End(group);
    Round round({c.quorum, absl::Seconds(c.grace)});
    int second = 0;
    for (const uint32_t group : c.contributed) round.Add(kStart + absl::Seconds(second++), Of(group));
    const RoundDecision decision = round.Decide(kStart + absl::Seconds(c.now), roster);
    EXPECT_EQ(decision.complete, c.complete) << c.name;
    EXPECT_EQ(decision.again, c.again < 0 ? absl::InfiniteFuture() : kStart + absl::Seconds(c.again)) << c.name;
    EXPECT_EQ(decision.missing, c.missing) << c.name;
    EXPECT_STRNE(decision.reason, "") << c.name;
  }
}

// The slow reference for Round's decision: it looks through all groups each time.
bool IsComplete(const Groups& here, const Groups& members, uint32_t quorum, bool grace_has_passed,
                const Roster& roster) {
  const auto missing = [&](uint32_t group) {
    return roster.Awaits(group) && std::find(here.begin(), here.end(), group) == here.end();
  };
  const bool all = std::none_of(members.begin(), members.end(), missing);
  return here.size() >= quorum && (all || grace_has_passed);
}

// Both decisions equal the slow one, for random groups that contribute, are awaited or have ended.
TEST(Round, DecidesAsIfItLookedThroughAllGroups) {
  constexpr uint32_t kGroups = 6;
  std::mt19937 random(1);
  int complete = 0;
  for (int i = 0; i < 20000; ++i) {
    Roster roster(kGroups);
    const uint32_t quorum = random() % 4;
    Round round({quorum, absl::Seconds(5)});
    Groups here, members, all;
    uint32_t awaited = 0;
    for (uint32_t group = 0; group < kGroups; ++group) {
      if (random() % 4 != 0) roster.Enter(group, 0);
      if (random() % 8 == 0) roster.End(group);
      if (random() % 3 != 0) here.push_back(group);
      if (random() % 3 != 0) members.push_back(group);
      all.push_back(group);
    }
    for (const uint32_t group : members) awaited += roster.Awaits(group) ? 1 : 0;
    for (const uint32_t group : here) round.Add(kStart, Of(group));
    const bool late = random() % 2 == 0;
    const absl::Time now = kStart + absl::Seconds(late ? 5 : 4);
    const uint32_t needed = std::max(quorum, 1u);
    // The grace window begins once `needed` groups have contributed. Fewer groups complete a round only if fewer remain
    // and all of those have contributed.
    const bool grace_has_passed = late && here.size() >= needed;
    const bool expected =
        !here.empty() && IsComplete(here, all, std::min(needed, roster.remaining()), grace_has_passed, roster);
    ASSERT_EQ(round.Decide(now, roster).complete, expected) << i;
    ASSERT_EQ(round.DecideAmong(members, awaited, now, roster).complete,
              IsComplete(here, members, 0, late && !here.empty(), roster))
        << i;
    complete += expected ? 1 : 0;
  }
  EXPECT_GT(complete, 2000);
  EXPECT_LT(complete, 18000);
}

// If all groups are expected, those that have not come yet are awaited like the others. A group is no longer awaited
// when somebody has waited for it in vain, or when it has ended.
TEST(Round, ExpectedGroupsAreAwaitedBeforeTheyCome) {
  Roster roster(3);
  roster.ExpectAll();
  Round round({0, absl::Seconds(5)});
  roster.Enter(1, 0);
  round.Add(kStart, Of(1));
  const RoundDecision early = round.Decide(kStart + absl::Seconds(4), roster);
  EXPECT_FALSE(early.complete);
  EXPECT_EQ(early.again, kStart + absl::Seconds(5));
  roster.Speak(0, 1);
  round.Add(kStart + absl::Seconds(4), Of(0));
  const RoundDecision late = round.Decide(kStart + absl::Seconds(5), roster);
  EXPECT_TRUE(late.complete);
  EXPECT_EQ(late.missing, std::vector<uint32_t>{2});
  roster.Dismiss(2);
  EXPECT_TRUE(round.Decide(kStart + absl::Seconds(4), roster).complete);
  roster.Speak(2, 1);
  EXPECT_FALSE(round.Decide(kStart + absl::Seconds(4), roster).complete);
  roster.End(2);
  EXPECT_TRUE(round.Decide(kStart + absl::Seconds(4), roster).complete);
}

// A repeat replaces the group's earlier contribution and does not count twice. Contributions are in the order of the
// groups, whatever order they came in.
TEST(Round, ARepeatCountsOnce) {
  const std::vector<float> first = {1}, second = {2};
  Roster roster(3);
  for (uint32_t group = 0; group < 3; ++group) roster.Enter(group, 0);
  Round round({2, absl::ZeroDuration()});
  round.Add(kStart, Of(2, first));
  round.Add(kStart, Of(2, second));
  EXPECT_FALSE(round.Decide(kStart, roster).complete);
  ASSERT_EQ(round.contributions().size(), 1u);
  EXPECT_EQ(round.contributions()[0].values.data(), second.data());
  round.Add(kStart, Of(0, first));
  EXPECT_TRUE(round.Decide(kStart, roster).complete);
  EXPECT_EQ(round.contributions()[0].group, 0u);
  EXPECT_EQ(round.contributions()[1].group, 2u);
}

// A withdrawn contribution leaves no trace: the quorum's grace window begins anew.
TEST(Round, WithdrawnIsAsIfNeverMade) {
  Roster roster(3);
  for (uint32_t group = 0; group < 3; ++group) roster.Enter(group, 0);
  Round round({2, absl::Seconds(5)});
  round.Add(kStart, Of(0));
  round.Add(kStart, Of(1));
  round.Withdraw(1);
  round.Withdraw(2);  // No effect: group 2 has contributed nothing.
  EXPECT_FALSE(round.Has(1));
  EXPECT_FALSE(round.Decide(kStart + absl::Seconds(100), roster).complete);
  round.Add(kStart + absl::Seconds(100), Of(2));
  EXPECT_EQ(round.Decide(kStart + absl::Seconds(100), roster).again, kStart + absl::Seconds(105));
  EXPECT_EQ(round.Take().size(), 2u);
  EXPECT_TRUE(round.contributions().empty());
  EXPECT_EQ(round.contributions().capacity(), 0u) << "a server has a round for each block";
  round.Add(kStart, Of(2));
  round.Withdraw(2);
  EXPECT_EQ(round.contributions().capacity(), 0u);
  EXPECT_FALSE(round.Decide(kStart + absl::Seconds(200), roster).complete);
}

// DecideAmong waits neither for groups outside its list nor for a quorum. The groups of the list have a grace window.
TEST(RoundTest, AmongGroupsThatAreSettled) {
  Roster roster(4);
  for (uint32_t group = 0; group < 4; ++group) roster.Enter(group, 0);
  Round round({.quorum = 3, .grace = absl::Seconds(5)});
  const std::vector<uint32_t> groups = {0, 2};
  Contribution from;
  from.group = 0;
  round.Add(kStart, from);
  const RoundDecision waits = round.DecideAmong(groups, 2, kStart, roster);
  EXPECT_FALSE(waits.complete);
  EXPECT_EQ(waits.again, kStart + absl::Seconds(5));
  const RoundDecision late = round.DecideAmong(groups, 2, kStart + absl::Seconds(5), roster);
  EXPECT_TRUE(late.complete);
  EXPECT_EQ(late.missing, (std::vector<uint32_t>{2}));
  EXPECT_TRUE(round.DecideAmong({}, 0, kStart, roster).complete);
  from.group = 2;
  round.Add(kStart + absl::Seconds(1), from);
  EXPECT_TRUE(round.DecideAmong(groups, 2, kStart + absl::Seconds(1), roster).complete);
  round.Withdraw(2);
  EXPECT_FALSE(round.DecideAmong(groups, 2, kStart + absl::Seconds(1), roster).complete);
  roster.Dismiss(2);
  EXPECT_TRUE(round.DecideAmong(groups, 1, kStart + absl::Seconds(1), roster).complete);
}

// A group is awaited from its beginning until somebody has waited for it in vain, and again once it exchanges.
TEST(Roster, AwaitsWhoSpeaks) {
  Roster roster(2);
  EXPECT_FALSE(roster.Awaits(0));
  roster.Enter(0, 0);
  EXPECT_TRUE(roster.Awaits(0));
  roster.Dismiss(0);
  EXPECT_FALSE(roster.Awaits(0));
  roster.Speak(0, 8);
  EXPECT_TRUE(roster.Awaits(0));
  EXPECT_FALSE(roster.Awaits(1));
  roster.End(0);
  EXPECT_FALSE(roster.Awaits(0));
  EXPECT_EQ(roster.remaining(), 1u);
  roster.Enter(0, 0);
  EXPECT_TRUE(roster.Awaits(0));
  EXPECT_EQ(roster.remaining(), 2u);
}

// The roster counts the awaited groups. Its number of changes grows only if somebody begins or ceases to be awaited.
TEST(Roster, CountsWhoIsAwaited) {
  Roster roster(3);
  EXPECT_EQ(roster.awaited(), 0u);
  roster.Enter(0, 0);
  roster.Speak(2, 4);
  EXPECT_EQ(roster.awaited(), 2u);
  const uint64_t changes = roster.changes();
  roster.Speak(2, 8);
  roster.Enter(0, 1);
  roster.Dismiss(1);
  EXPECT_EQ(roster.changes(), changes);
  roster.End(2);
  roster.End(2);
  EXPECT_EQ(roster.awaited(), 1u);
  EXPECT_EQ(roster.remaining(), 2u);
  EXPECT_GT(roster.changes(), changes);
  roster.ExpectAll();
  EXPECT_EQ(roster.awaited(), 3u);
}

// Behind(group, bound, steps_of) returns the awaited groups that are more than `bound` steps behind `group`. It never
// returns groups that are not awaited.
TEST(Roster, TellsWhoIsBehind) {
  std::vector<uint64_t> steps = {10, 6, 5, 0};
  const auto steps_of = [&steps](uint32_t group) { return steps[group]; };
  Roster roster(4);
  for (uint32_t group = 0; group < 3; ++group) roster.Enter(group, 0);
  EXPECT_EQ(roster.Behind(0, 3, steps_of), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(roster.Behind(0, 4, steps_of), (std::vector<uint32_t>{2}));
  EXPECT_TRUE(roster.Behind(0, 5, steps_of).empty());
  EXPECT_TRUE(roster.Behind(2, 1, steps_of).empty());
  roster.Dismiss(2);
  EXPECT_TRUE(roster.Behind(0, 4, steps_of).empty());
}

// A group that begins while others are far ahead counts as level with the slowest of them. So does a group that comes
// back after it was given up.
TEST(Roster, ALatecomerNeedNotCatchUp) {
  std::vector<uint64_t> steps = {1000, 900, 0};
  const auto steps_of = [&steps](uint32_t group) { return steps[group]; };
  Roster roster(3);
  roster.Enter(1, 900);
  roster.Enter(0, 1000);
  roster.Enter(2, 0);
  EXPECT_TRUE(roster.Behind(0, 100, steps_of).empty());
  EXPECT_EQ(roster.Behind(0, 99, steps_of), (std::vector<uint32_t>{1, 2}));
  steps[2] = 60;
  EXPECT_EQ(roster.Behind(0, 99, steps_of), (std::vector<uint32_t>{1}));
  roster.Dismiss(1);
  // Speak counts group 2 at 900 steps: a head start of 900, and 0 steps reported.
  roster.Speak(1, 901);
  steps[1] = 901;
  EXPECT_TRUE(roster.Behind(0, 99, steps_of).empty());
}

}  // namespace
}  // namespace hooke
