#include "server/cluster/worker_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WorkerTableTest : public testing::Test {
 protected:
  void Pass(absl::Duration time) { now_ += time; }

  LivenessOptions liveness_;
  WorkerTable table_{liveness_};
  Instant now_{absl::FromUnixSeconds(1000000000), absl::Seconds(1000)};
};

// Groups start only on a worker that has a session, was heard of late, and is not lost.
TEST_F(WorkerTableTest, KnowsWhoIsAlive) {
  known::Worker& worker = table_.Add("a", now_);
  EXPECT_FALSE(table_.IsAlive(worker, now_));
  table_.BeginSession(worker);
  EXPECT_TRUE(table_.IsAlive(worker, now_));
  EXPECT_TRUE(table_.IsConnected("a"));
  EXPECT_FALSE(table_.IsConnected("b"));
  worker.lost = true;
  EXPECT_FALSE(table_.IsAlive(worker, now_));
  EXPECT_TRUE(table_.Answers(worker, now_));
  Pass(liveness_.silent_after + absl::Seconds(1));
  EXPECT_FALSE(table_.Answers(worker, now_));
}

TEST_F(WorkerTableTest, FindsAWorkerByItsSession) {
  known::Worker& a = table_.Add("a", now_);
  known::Worker& b = table_.Add("b", now_);
  table_.BeginSession(a);
  table_.BeginSession(b);
  EXPECT_EQ(table_.OfSession(a.session), &a);
  EXPECT_EQ(table_.OfSession(b.session), &b);
  const SessionId ended = a.session;
  table_.EndSession(a);
  EXPECT_EQ(table_.OfSession(ended), nullptr);
  EXPECT_EQ(a.session, 0);
  table_.BeginSession(a);
  EXPECT_NE(a.session, ended);
}

TEST_F(WorkerTableTest, AddsAWorkerOnce) {
  known::Worker& worker = table_.Add("a", now_);
  worker.slots = 4;
  Pass(absl::Seconds(1));
  EXPECT_EQ(&table_.Add("a", now_), &worker);
  EXPECT_EQ(worker.slots, 4);
  EXPECT_EQ(worker.last_heard.steady, now_.steady - absl::Seconds(1));
}

// The end of a group on several workers is blamed on the worker of the rank that failed first, or else on one that is
// gone. While all are there, nobody knows.
TEST_F(WorkerTableTest, BlamesTheWorkerThatIsGone) {
  GroupRecord group;
  group.parts = {{"a"}, {"b"}};
  known::LiveGroup live;
  for (const char* name : {"a", "b"}) table_.BeginSession(table_.Add(name, now_));
  EXPECT_EQ(table_.WorkerToBlame(group, live), "");
  EXPECT_EQ(table_.GoneText(group), "");
  table_.EndSession(*table_.Find("b"));
  EXPECT_EQ(table_.WorkerToBlame(group, live), "b");
  EXPECT_EQ(table_.GoneText(group), "worker b is gone; ");
  live.failed_on = "a";
  EXPECT_EQ(table_.WorkerToBlame(group, live), "a");
  group.parts.resize(1);
  live.failed_on.clear();
  EXPECT_EQ(table_.WorkerToBlame(group, live), "a");
}

TEST_F(WorkerTableTest, KnowsWhoMayRunAJob) {
  table_.Add("a", now_).occupants[{"job-1", 0, 3}] = 2;
  EXPECT_TRUE(table_.MayRun("job-1"));
  EXPECT_FALSE(table_.MayRun("job-2"));
}

// A worker is looked at when it may be silent, when it may be lost, and when it is forgotten. A drained one is never
// forgotten, and the worker of a batch job soon.
TEST_F(WorkerTableTest, IsLookedAtWhenItsStateMayChange) {
  known::Worker& worker = table_.Add("a", now_);
  table_.Expect(worker);
  EXPECT_THAT(table_.TakeDue(now_.steady), IsEmpty());
  Pass(liveness_.silent_after);
  EXPECT_THAT(table_.TakeDue(now_.steady), ElementsAre("a"));
  worker.silent = true;
  table_.Expect(worker);
  EXPECT_THAT(table_.TakeDue(now_.steady), IsEmpty());
  Pass(liveness_.lease - liveness_.silent_after);
  EXPECT_THAT(table_.TakeDue(now_.steady), ElementsAre("a"));
  worker.lost = true;
  EXPECT_FALSE(WorkerTable::IsForgotten(worker, now_));
  worker.only_job = "job-1";
  Pass(absl::Minutes(2));
  EXPECT_TRUE(WorkerTable::IsForgotten(worker, now_));
  worker.only_job.clear();
  EXPECT_FALSE(WorkerTable::IsForgotten(worker, now_));
  Pass(absl::Hours(1));
  EXPECT_TRUE(WorkerTable::IsForgotten(worker, now_));
  worker.drain = v1::DRAIN_FINISH;
  EXPECT_FALSE(WorkerTable::IsForgotten(worker, now_));
}

}  // namespace
}  // namespace hooke
