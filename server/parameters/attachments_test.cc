#include "server/parameters/attachments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "server/parameters/test_center.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLease = absl::Seconds(20);
const absl::Time kNow = absl::UnixEpoch();

// The attachments of a job with three groups of two ranks.
class AttachmentsTest : public ::testing::Test {
 protected:
  static ShardPlan MakePlan(uint32_t first_incarnation) {
    TestCenter center;
    center.groups = 3;
    center.ranks = 2;
    center.first_incarnation = first_incarnation;
    return PlanShard(MakeAttachRequest(center, 0, std::max(first_incarnation, 1u))).value();
  }

  // Attaches a start of a group. The test fails if that is refused.
  AttachAnswer Attach(const Speaker& speaker, absl::Duration after = absl::ZeroDuration()) {
    return groups_.Attach(kNow + after, speaker, kLease).value().answer;
  }

  absl::Status Write(const Speaker& speaker, absl::Duration after = absl::ZeroDuration()) {
    return groups_.WriteInitial(kNow + after, speaker, [this] { ++written_; });
  }

  // Attaches group 0 and has it initialize the center, and attaches all others.
  void Initialize() {
    ASSERT_EQ(Attach({0, 0, 1}), AttachAnswer::kInitialize);
    ASSERT_EQ(groups_.CompleteInitialize({0, 0, 1}), absl::OkStatus());
    for (uint32_t group = 0; group < 3; ++group) ASSERT_EQ(Attach({group, 0, 1}), AttachAnswer::kReady);
  }

  const ShardPlan plan_ = MakePlan(0);
  Attachments groups_{plan_};
  int written_ = 0;
};

// Only the last start of each group that attached may speak.
TEST_F(AttachmentsTest, OnlyTheLastStartSpeaks) {
  EXPECT_EQ(groups_.Check({1, 0, 2}).code(), absl::StatusCode::kNotFound);
  Attach({1, 0, 2});
  EXPECT_EQ(groups_.Check({1, 1, 2}), absl::OkStatus());
  EXPECT_EQ(groups_.Check({1, 0, 3}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(groups_.Check({0, 0, 1}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(groups_.Check({1, 0, 1}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(groups_.Attach(kNow, {1, 0, 1}, kLease).status().code(), absl::StatusCode::kAborted);
  // A group that this generation does not have may be one of a later generation.
  EXPECT_EQ(groups_.Check({3, 0, 2}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(groups_.Check({3, 0, 3}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(groups_.Attach(kNow, {3, 0, 3}, kLease).status().code(), absl::StatusCode::kInvalidArgument);
}

// An answer counts as changed once for each start.
TEST_F(AttachmentsTest, TellsWhatIsWorthALogLine) {
  Attach({0, 0, 1});
  EXPECT_TRUE(groups_.Attach(kNow, {1, 0, 1}, kLease)->changed);
  EXPECT_FALSE(groups_.Attach(kNow, {1, 0, 1}, kLease)->changed);
  EXPECT_TRUE(groups_.Attach(kNow, {1, 0, 2}, kLease)->changed);
  EXPECT_TRUE(groups_.Attach(kNow + kLease, {1, 0, 2}, kLease)->changed);
}

// Only the start with the right to initialize may write, and each write renews its lease.
TEST_F(AttachmentsTest, TheInitializerWrites) {
  EXPECT_EQ(Write({0, 0, 1}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Attach({0, 0, 1}), AttachAnswer::kInitialize);
  EXPECT_EQ(Attach({1, 0, 1}), AttachAnswer::kWait);
  EXPECT_EQ(Write({0, 0, 1}, absl::Seconds(15)), absl::OkStatus());
  EXPECT_EQ(Attach({1, 0, 1}, absl::Seconds(30)), AttachAnswer::kWait);
  EXPECT_EQ(Attach({1, 0, 1}, absl::Seconds(35)), AttachAnswer::kInitialize);
  EXPECT_EQ(Write({0, 0, 1}, absl::Seconds(35)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(groups_.CompleteInitialize({0, 0, 1}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(written_, 1);
  EXPECT_FALSE(groups_.initialized());
  EXPECT_EQ(groups_.CheckOpen({1, 0, 1}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(groups_.CompleteInitialize({1, 0, 1}), absl::OkStatus());
  EXPECT_TRUE(groups_.initialized());
  EXPECT_EQ(groups_.CheckOpen({1, 0, 1}), absl::OkStatus());
  EXPECT_EQ(groups_.CompleteInitialize({0, 0, 1}), absl::OkStatus());
  EXPECT_EQ(Write({1, 0, 1}).code(), absl::StatusCode::kUnavailable);
}

// A call of End is about one start of a group. A second call adds no change for the snapshot. The job stops only if
// `stops` is set.
TEST_F(AttachmentsTest, GroupsEnd) {
  Initialize();
  EXPECT_EQ(groups_.End({1, 0, 1}, false), absl::OkStatus());
  EXPECT_EQ(groups_.End({1, 0, 1}, false), absl::OkStatus());
  EXPECT_EQ(groups_.changes(), 1u);
  EXPECT_TRUE(groups_.HasEnded({1, 0, 1}));
  EXPECT_FALSE(groups_.HasEnded({1, 0, 2}));
  EXPECT_FALSE(groups_.HasEnded({0, 0, 1}));
  EXPECT_FALSE(groups_.TellPace(kNow, 0, 0).stops);
  EXPECT_EQ(groups_.End({1, 0, 1}, true), absl::OkStatus());
  EXPECT_EQ(groups_.changes(), 2u);
  EXPECT_TRUE(groups_.TellPace(kNow, 0, 0).stops);
  EXPECT_EQ(groups_.End({1, 0, 2}, false).code(), absl::StatusCode::kNotFound);
}

// The fastest speed counts for some time. A speed of 0 does not replace an earlier one.
TEST_F(AttachmentsTest, KnowsTheFastestSpeed) {
  groups_.TellPace(kNow, 0, 3);
  EXPECT_EQ(groups_.TellPace(kNow, 1, 2).fastest_steps_per_second, 3);
  EXPECT_EQ(groups_.TellPace(kNow, 0, 0).fastest_steps_per_second, 3);
  const absl::Time later = kNow + Attachments::kPaceMemory + absl::Seconds(1);
  EXPECT_EQ(groups_.TellPace(later, 1, 2).fastest_steps_per_second, 2);
}

// After the job's end nobody exchanges, and nobody waits.
TEST_F(AttachmentsTest, ClosesWhenTheJobEnds) {
  Initialize();
  EXPECT_EQ(groups_.CheckWaiting({0, 0, 1}), absl::OkStatus());
  groups_.Close(0);
  EXPECT_TRUE(groups_.closed());
  EXPECT_EQ(groups_.changes(), 0u);
  EXPECT_EQ(groups_.CheckOpen({0, 0, 1}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(groups_.CheckWaiting({0, 0, 1}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(groups_.End({0, 0, 1}, false), absl::OkStatus());
}

// After the generation's end its starts are refused, and later ones are told to attach.
TEST_F(AttachmentsTest, ClosesWhenTheGenerationEnds) {
  Initialize();
  groups_.Close(5);
  EXPECT_EQ(groups_.changes(), 1u);
  EXPECT_EQ(groups_.successor(), 5u);
  EXPECT_EQ(groups_.CheckOpen({0, 0, 1}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(groups_.CheckWaiting({0, 0, 1}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(groups_.End({0, 0, 1}, true).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(groups_.Attach(kNow, {0, 0, 5}, kLease).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(groups_.Check({0, 0, 5}).code(), absl::StatusCode::kNotFound);
}

// After StopWaiting exchanges may begin, but not wait.
TEST_F(AttachmentsTest, StopsWaits) {
  Initialize();
  groups_.StopWaiting();
  EXPECT_EQ(groups_.CheckOpen({0, 0, 1}), absl::OkStatus());
  EXPECT_EQ(groups_.CheckWaiting({0, 0, 1}).code(), absl::StatusCode::kUnavailable);
}

// An object that is restored from a copy refuses and admits the same starts as the original.
TEST_F(AttachmentsTest, AreRestored) {
  Initialize();
  Attach({2, 0, 4});
  ASSERT_EQ(groups_.End({1, 0, 1}, true), absl::OkStatus());
  groups_.Close(7);
  const AttachedGroups copy = groups_.Copy();
  EXPECT_THAT(copy.incarnations, ElementsAre(1, 1, 4));
  EXPECT_THAT(copy.ended, ElementsAre(0, 1, 0));
  EXPECT_TRUE(copy.stop);
  EXPECT_EQ(copy.successor, 7u);
  Attachments restored(plan_);
  restored.Restore(copy);
  EXPECT_TRUE(restored.initialized());
  EXPECT_TRUE(restored.closed());
  EXPECT_TRUE(restored.HasEnded({1, 0, 1}));
  EXPECT_TRUE(restored.TellPace(kNow, 0, 0).stops);
  EXPECT_EQ(restored.Check({2, 0, 4}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(restored.Copy().incarnations, copy.incarnations);
}

// A later generation keeps whether the center is initialized and the job stops, but knows no starts.
TEST_F(AttachmentsTest, GoOnInALaterGeneration) {
  Initialize();
  ASSERT_EQ(groups_.End({1, 0, 1}, true), absl::OkStatus());
  groups_.Close(7);
  const ShardPlan plan = MakePlan(7);
  Attachments after(plan);
  after.GoOn(groups_);
  EXPECT_TRUE(after.initialized());
  EXPECT_FALSE(after.closed());
  EXPECT_TRUE(after.TellPace(kNow, 0, 0).stops);
  EXPECT_EQ(after.Check({0, 0, 7}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(after.Check({0, 0, 1}).message()), HasSubstr("of a generation that is over"));
}

}  // namespace
}  // namespace hooke
