// Workers on which groups die: when they are avoided, and what follows.

#include <gmock/gmock.h>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class CoordinatorAvoidTest : public CoordinatorFixture {
 protected:
  // Lets the job's group 0 die on the worker that runs it, and lets the time pass until it runs again. Returns false if
  // the group does not run on the worker.
  bool Die(FakeWorker& worker, const std::string& job_id, const absl::Status& how,
           const std::vector<FakeWorker*>& alive) {
    const auto runs = std::find_if(worker.running().begin(), worker.running().end(),
                                   [&](const auto& run) { return run.first.job_id == job_id; });
    if (runs == worker.running().end()) return false;
    worker.End(GroupKey(runs->first), how, now_);
    Pass(absl::Seconds(6), alive);
    return true;
  }
  std::string Avoided(const std::string& name) {
    for (const v1::NodeStatus& node : coordinator_->Nodes(now_)) {
      if (node.name() == name) return node.avoided();
    }
    return "no such node";
  }
};

// After three deaths, the group starts on the other worker, although it fits the first one better. Ten minutes later
// the first one gets groups as before.
TEST_F(CoordinatorAvoidTest, RestartsElsewhere) {
  FakeWorker w1("w1", 2);
  FakeWorker w2("w2", 4);
  const std::vector<FakeWorker*> both = {&w1, &w2};
  for (FakeWorker* worker : both) ASSERT_TRUE(worker->Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  Pass(absl::Seconds(1), both);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Avoided("w1"), IsEmpty());
    const std::vector<std::string> ways = {"rank 1 was killed", "no memory", "cannot open the GPU"};
    ASSERT_TRUE(Die(w1, id, absl::UnavailableError(ways[i]), both)) << i;
  }
  EXPECT_THAT(Avoided("w1"), HasSubstr(", because groups died there 3 times within 12s, the last one group 0 of "
                                       "fashion-1: cannot open the GPU"));
  EXPECT_THAT(Avoided("w1"), StartsWith("until 1970-01-12T13:56:53Z"));
  EXPECT_EQ(w2.running().size(), 1u);
  EXPECT_THAT(Avoided("w2"), IsEmpty());
  const std::string second = Submit({1, 2});
  const std::string third = Submit({1, 2});
  Pass(absl::Seconds(1), both);
  EXPECT_EQ(w2.running().size(), 2u);
  EXPECT_EQ(w1.running().size(), 1u) << "it is used all the same if there is no room elsewhere";
  Pass(absl::Minutes(10), both);
  EXPECT_THAT(Avoided("w1"), IsEmpty());
}

// A worker on which groups died still gets a group if there is no other worker.
TEST_F(CoordinatorAvoidTest, TheOnlyWorkerIsUsedAllTheSame) {
  FakeWorker w1("w1", 2);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string id = Submit({1, 2});
  Pass(absl::Seconds(1), {&w1});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Die(w1, id, absl::UnavailableError(i % 2 == 0 ? "killed" : "no memory"), {&w1})) << i;
  }
  EXPECT_THAT(Avoided("w1"), HasSubstr("4 times"));
}

// A group that somebody stopped does not count as a death. A lost worker counts as one death, however many groups it
// ran. So a worker that comes and goes is avoided.
TEST_F(CoordinatorAvoidTest, CountsWhatTheWorkerIsToBlameFor) {
  FakeWorker w1("w1", 3);
  ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
  const std::string first = Submit({1, 1});
  const std::string second = Submit({2, 1});
  Pass(absl::Seconds(1), {&w1});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Die(w1, first, absl::CancelledError("its worker was shut down"), {&w1})) << i;
  }
  EXPECT_THAT(Avoided("w1"), IsEmpty());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Avoided("w1"), IsEmpty()) << i;
    w1.Crash(now_);
    Pass(absl::Seconds(1), {});
    ASSERT_TRUE(w1.Connect(*coordinator_, now_).ok());
    Pass(absl::Seconds(20), {&w1});
    ASSERT_EQ(w1.running().size(), 3u) << i;
  }
  EXPECT_THAT(Avoided("w1"), HasSubstr("3 times"));
  EXPECT_THAT(Avoided("w1"), HasSubstr("worker w1 does not run it any more"));
}

}  // namespace
}  // namespace hooke
