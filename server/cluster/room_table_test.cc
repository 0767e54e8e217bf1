#include "server/cluster/room_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class RoomTableTest : public testing::Test {
 protected:
  RoomTableTest() {
    known::Worker& worker = workers_.Add("a", now_);
    worker.slots = 4;
    workers_.BeginSession(worker);
  }

  known::Worker& worker() { return *workers_.Find("a"); }
  Rooms& Refresh() { return table_.Refresh(workers_, jobs_, now_); }
  uint32_t FreeSlots() { return Refresh().Find("a")->worker.free; }
  void Check() { table_.CheckAllKept(workers_, jobs_, now_); }

  LivenessOptions liveness_;
  AvoidOptions avoid_;
  WorkerTable workers_{liveness_};
  JobTable jobs_;
  RoomTable table_{liveness_.silent_after, avoid_};
  Instant now_{absl::FromUnixSeconds(1000000000), absl::Seconds(1000)};
};

TEST_F(RoomTableTest, ComputesWhatHasChanged) {
  EXPECT_THAT(Refresh().all(), IsEmpty());
  table_.Changed("a");
  EXPECT_EQ(FreeSlots(), 4);
  worker().occupants[{"job-1", 0, 1}] = 3;
  EXPECT_EQ(FreeSlots(), 4);
  GroupRecord group;
  group.parts = {{"a"}};
  table_.Changed(group);
  EXPECT_EQ(FreeSlots(), 1);
  Check();
}

// A worker may say that it runs more than it has room for.
TEST_F(RoomTableTest, AnOverfullWorkerHasNoRoom) {
  worker().occupants[{"job-1", 0, 1}] = 9;
  table_.Changed("a");
  EXPECT_EQ(FreeSlots(), 0);
}

// A worker loses its room when it is silent, though nothing comes from it that could say so.
TEST_F(RoomTableTest, ASilentWorkerHasNoRoom) {
  table_.Changed("a");
  EXPECT_THAT(Refresh().all(), SizeIs(1));
  EXPECT_TRUE(worker().has_room);
  now_ += liveness_.silent_after;
  EXPECT_THAT(Refresh().all(), IsEmpty());
  EXPECT_FALSE(worker().has_room);
  Check();
}

TEST_F(RoomTableTest, AWorkerIsNotAvoidedForever) {
  for (size_t i = 0; i < avoid_.deaths_min; ++i) AddDeath(worker().deaths, {"job-1", 0, now_.steady, "died"}, avoid_);
  table_.Changed("a");
  EXPECT_TRUE(Refresh().Find("a")->worker.avoided);
  now_ += avoid_.avoid_for;
  worker().last_heard = now_;
  EXPECT_FALSE(Refresh().Find("a")->worker.avoided);
}

// The check sees a change that nobody has noted.
TEST_F(RoomTableTest, TheCheckFindsAStaleRoom) {
  table_.Changed("a");
  Refresh();
  Check();
  worker().occupants[{"job-1", 0, 1}] = 3;
  EXPECT_DEATH(Check(), "kept: a .* 4 4 .*it should be: a .* 4 1 ");
}

}  // namespace
}  // namespace hooke
