// Groups that are slower than their peers: they are named, and leave for other workers if the job says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/time/time.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/coordinator_fixture.h"
#include "server/coordinator/fake_worker.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CoordinatorStragglersTest : public CoordinatorFixture {
 protected:
  // Starts a job of three groups, each on a worker of its own.
  void StartJob(bool moves) {
    for (FakeWorker* worker : {&a_, &b_, &c_}) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
    v1::SubmitRequest request = ExampleSubmission("s1", {3, 2});
    request.mutable_job()->mutable_groups()->set_move_stragglers(moves);
    const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
    ASSERT_TRUE(id.ok()) << id.status();
    id_ = *id;
    Pass(absl::Seconds(1), {&a_, &b_, &c_});
    ASSERT_THAT(c_.started(), ElementsAre(GroupKey{id_, 2, 1}));
  }

  // Lets the groups report for so long. Groups 0 and 1 compute 20 ms a step, group 2 `slow`. All make as many steps, as
  // under rules with rounds.
  void Train(absl::Duration time, absl::Duration slow) {
    for (const absl::Duration end = now_.steady + time; now_.steady < end;) {
      step_ += 10;
      fast_ += 10 * absl::Milliseconds(20);
      slow_ += 10 * slow;
      Pass(absl::Seconds(1), {&a_, &b_, &c_, &d_});
      const auto report = [&](FakeWorker& worker, uint32_t group, absl::Duration computed) {
        for (const auto& [key, run] : std::map<GroupKey, FakeWorker::Run>(worker.running())) {
          if (key.group == group) worker.Works(key, step_, computed, now_);
        }
      };
      report(a_, 0, fast_);
      report(b_, 1, fast_);
      report(c_, 2, slow_);
      report(d_, 2, slow_);
    }
  }

  FakeWorker a_{"a", 2}, b_{"b", 2}, c_{"c", 2}, d_{"d", 2};
  std::string id_;
  uint64_t step_ = 0;
  absl::Duration fast_, slow_;
};

// A straggler is named after two measurements, and no longer once it is as fast as the others.
TEST_F(CoordinatorStragglersTest, IsNamed) {
  ASSERT_NO_FATAL_FAILURE(StartJob(false));
  Train(absl::Seconds(55), absl::Milliseconds(41));
  EXPECT_THAT(Status(id_).groups(2).slow(), IsEmpty());
  Train(absl::Seconds(10), absl::Milliseconds(41));
  EXPECT_EQ(Status(id_).groups(2).slow(), "it works 41 ms on a step, its peers 20 ms");
  EXPECT_THAT(Status(id_).groups(0).slow(), IsEmpty());
  EXPECT_THAT(Log(id_), HasSubstr("group 2 on worker c is a straggler: it works 41 ms on a step, its peers 20 ms"));
  Train(absl::Seconds(100), absl::Milliseconds(29));
  EXPECT_THAT(Status(id_).groups(2).slow(), IsEmpty());
  EXPECT_THAT(Log(id_), HasSubstr("group 2 is as fast as its peers again"));
  EXPECT_THAT(c_.stop_reasons(), IsEmpty());
}

// If the job says so, a straggler leaves for a free worker. It does not come back to the worker on which it was slow,
// and it is not moved again at once.
TEST_F(CoordinatorStragglersTest, Moves) {
  ASSERT_NO_FATAL_FAILURE(StartJob(true));
  Train(absl::Seconds(70), absl::Milliseconds(41));
  EXPECT_THAT(c_.stop_reasons(), IsEmpty()) << "no other worker is there";
  ASSERT_TRUE(d_.Connect(*coordinator_, now_).ok());
  Train(absl::Seconds(35), absl::Milliseconds(41));
  EXPECT_THAT(c_.stop_reasons(), ElementsAre("straggler on worker c: it works 41 ms on a step, its peers 20 ms"));
  EXPECT_EQ(c_.leaves(), 1u);
  Pass(absl::Seconds(1), {&a_, &b_, &c_, &d_});
  EXPECT_THAT(d_.started(), ElementsAre(GroupKey{id_, 2, 2}));
  EXPECT_EQ(Stored()[0].groups[2].failures, 0u);
  slow_ = fast_ = absl::ZeroDuration();
  Train(absl::Seconds(130), absl::Milliseconds(41));
  EXPECT_THAT(Status(id_).groups(2).slow(), Not(IsEmpty()));
  EXPECT_THAT(d_.stop_reasons(), IsEmpty());
  Train(absl::Minutes(11), absl::Milliseconds(41));
  EXPECT_THAT(d_.stop_reasons(), IsEmpty()) << "only the worker that it has left is free";
}

// A group does not leave while another one waits for room: that one would take its place.
TEST_F(CoordinatorStragglersTest, StaysWhileOthersWait) {
  ASSERT_NO_FATAL_FAILURE(StartJob(true));
  FakeWorker large("large", 4);
  ASSERT_TRUE(large.Connect(*coordinator_, now_).ok());
  Submit({1, 4});
  Submit({1, 4});
  ASSERT_TRUE(d_.Connect(*coordinator_, now_).ok());
  Train(absl::Seconds(100), absl::Milliseconds(41));
  EXPECT_THAT(Status(id_).groups(2).slow(), Not(IsEmpty()));
  EXPECT_THAT(c_.stop_reasons(), IsEmpty());
}

// A worker that was away when its group was asked to leave is asked again.
TEST_F(CoordinatorStragglersTest, IsAskedAgain) {
  ASSERT_NO_FATAL_FAILURE(StartJob(true));
  ASSERT_TRUE(d_.Connect(*coordinator_, now_).ok());
  Train(absl::Seconds(61), absl::Milliseconds(41));
  ASSERT_THAT(Log(id_), HasSubstr("group 2 leaves, to start on another worker"));
  c_.Disconnect(now_);
  ASSERT_TRUE(c_.Connect(*coordinator_, now_).ok());
  Train(absl::Seconds(5), absl::Milliseconds(41));
  EXPECT_THAT(d_.started(), ElementsAre(GroupKey{id_, 2, 2}));
}

// Groups of another kind are no peers.
TEST_F(CoordinatorStragglersTest, KindsAreNotCompared) {
  for (FakeWorker* worker : {&a_, &b_, &c_}) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  v1::SubmitRequest request = ExampleSubmission("s1", {});
  v1::GroupsSpec& groups = *request.mutable_job()->mutable_groups();
  groups.Clear();
  for (const uint32_t count : {2, 1}) {
    groups.add_kinds()->set_count(count);
    groups.mutable_kinds()->rbegin()->set_ranks(2);
  }
  const absl::StatusOr<std::string> id = coordinator_->Submit(request, now_);
  ASSERT_TRUE(id.ok()) << id.status();
  id_ = *id;
  Pass(absl::Seconds(1), {&a_, &b_, &c_});
  Train(absl::Seconds(100), absl::Milliseconds(41));
  EXPECT_THAT(Status(id_).groups(2).slow(), IsEmpty());
}

}  // namespace
}  // namespace hooke
