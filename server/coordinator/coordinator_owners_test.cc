// Owners of jobs: who comes next, the most slots that one may use, and what a restart of the coordinator keeps.

#include <gmock/gmock.h>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class CoordinatorOwnersTest : public CoordinatorFixture {
 protected:
  absl::StatusOr<std::string> TrySubmit(const std::string& owner, ExampleGroups groups) {
    v1::SubmitRequest request = ExampleSubmission(absl::StrCat("o", ++submissions_), groups);
    request.mutable_job()->set_owner(owner);
    return coordinator_->Submit(request, now_);
  }
  std::string SubmitFor(const std::string& owner, ExampleGroups groups) {
    const absl::StatusOr<std::string> id = TrySubmit(owner, groups);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }
};

// The owner who has used the least comes next, though the other submitted first. That holds after a restart of the
// coordinator, too.
TEST_F(CoordinatorOwnersTest, TheLeastUseComesFirst) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string runs = SubmitFor("anna", {1, 2});
  w1.Receive(now_);
  const std::string second = SubmitFor("anna", {1, 2});
  const std::string third = SubmitFor("anna", {1, 2});
  const std::string bens = SubmitFor("ben", {1, 2});
  Pass(absl::Minutes(30), {&w1});
  EXPECT_EQ(Status(bens).queue_position(), 1u);
  EXPECT_EQ(Status(second).queue_position(), 2u);
  EXPECT_EQ(Status(third).queue_position(), 3u);
  ASSERT_TRUE(coordinator_->Cancel(runs, now_).ok());
  w1.Receive(now_);
  Pass(absl::Seconds(1), {&w1});
  EXPECT_THAT(w1.started().back(), (GroupKey{bens, 0, 1}));
  w1.Disconnect(now_);
  Restart();
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  ASSERT_TRUE(coordinator_->Cancel(bens, now_).ok());
  const std::string next = SubmitFor("ben", {1, 2});
  Pass(absl::Seconds(1), {&w1});
  EXPECT_THAT(w1.started().back(), (GroupKey{next, 0, 1})) << "ben still used less than anna";
}

// An owner's groups wait while they would take more slots than its quota, and say so. Others start meanwhile.
TEST_F(CoordinatorOwnersTest, QuotasLimitSlots) {
  settings_.cluster.owner_slots = *ParseOwnerSlots("4,carl=0");
  Restart();
  FakeWorker w1("w1", 16);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string first = SubmitFor("anna", {3, 2});
  const std::string large = SubmitFor("anna", {1, 3});
  const std::string small = SubmitFor("anna", {1, 1});
  const std::string bens = SubmitFor("ben", {1, 4});
  w1.Receive(now_);
  EXPECT_THAT(w1.started(), ElementsAre(GroupKey{first, 0, 1}, GroupKey{first, 1, 1}, GroupKey{bens, 0, 1}));
  EXPECT_EQ(Status(first).groups(2).reason(), "needs 2 slots; anna uses 4 of 4 slots");
  EXPECT_EQ(Status(large).reason(), "1st in the queue; needs 3 slots; anna uses 4 of 4 slots");
  w1.End({first, 0, 1}, absl::OkStatus(), now_);
  w1.Receive(now_);
  EXPECT_EQ(w1.started().back(), (GroupKey{first, 2, 1})) << "the job that has started comes first";
  w1.End({first, 1, 1}, absl::OkStatus(), now_);
  w1.Receive(now_);
  EXPECT_THAT(w1.started(), SizeIs(4)) << "a small group does not overtake the large one of its owner";
  EXPECT_EQ(Status(small).reason(), "2nd in the queue; needs 1 slot; anna uses 2 of 4 slots");
  const absl::Status too_large = TrySubmit("anna", {1, 5}).status();
  EXPECT_EQ(too_large.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(too_large.message()),
              HasSubstr("a group of 5 ranks can never start, because anna may use 4 slots at once"));
  EXPECT_EQ(TrySubmit("carl", {1, 1}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hooke
