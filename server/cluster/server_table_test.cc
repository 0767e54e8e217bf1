#include "server/cluster/server_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class ServerTableTest : public testing::Test {
 protected:
  // Takes a heartbeat as ClusterState does. Returns why it is refused; empty: it is not.
  std::string Hear(const ServerClaim& claim) {
    std::string why = table_.Refuse(claim, "1.0", now_, effects_);
    if (!why.empty()) return why;
    known::Server& server = table_.Add(claim.server_id);
    ServerTable::TakeClaim(server, claim, now_);
    server.heard = true;
    server.last_heard = now_;
    table_.DialIfDue(server, now_, effects_);
    return why;
  }

  LivenessOptions liveness_;
  ServerTable table_{liveness_};
  Effects effects_;
  Instant now_{absl::FromUnixSeconds(1000000000), absl::Seconds(1000)};
};

TEST_F(ServerTableTest, DialsANewServerOnce) {
  EXPECT_EQ(Hear({"id1", "process1", "a:1"}), "");
  EXPECT_EQ(Hear({"id1", "process1", "a:1"}), "");
  ASSERT_THAT(effects_.dials, SizeIs(1));
  EXPECT_EQ(effects_.dials[0].address, "a:1");
}

// An answer to a dial of the old address must not count for the new one, so the server gets another dial.
TEST_F(ServerTableTest, DialsAServerThatMovesAgain) {
  Hear({"id1", "process1", "a:1"});
  table_.Find("id1")->reach = LiveServer::Reach::kReached;
  Hear({"id1", "process1", "a:2"});
  ASSERT_THAT(effects_.dials, SizeIs(2));
  EXPECT_EQ(effects_.dials[1].address, "a:2");
  EXPECT_NE(effects_.dials[1].number, effects_.dials[0].number);
  EXPECT_EQ(table_.Find("id1")->reach, LiveServer::Reach::kBeingDialed);
}

// Two processes say that they are the same server. The one that lives keeps speaking for it, and the other is shown to
// users.
TEST_F(ServerTableTest, RefusesASecondProcess) {
  Hear({"id1", "process1", "a:1"});
  EXPECT_THAT(Hear({"id1", "process2", "b:1"}), HasSubstr("a:1"));
  const std::vector<v1::NodeStatus> nodes = table_.Statuses(now_);
  ASSERT_THAT(nodes, SizeIs(2));
  EXPECT_EQ(nodes[0].name(), "a:1");
  EXPECT_EQ(nodes[0].problem(), "");
  EXPECT_EQ(nodes[1].name(), "b:1");
  EXPECT_NE(nodes[1].problem(), "");
  EXPECT_THAT(table_.Figures(now_), SizeIs(1));
}

TEST_F(ServerTableTest, FindsAnotherLiveServerAtTheAddress) {
  Hear({"id1", "process1", "a:1"});
  Hear({"id2", "process2", "a:1"});
  EXPECT_EQ(table_.LiveServerAt({"id1", "process1", "a:1"}, now_), "id2");
  EXPECT_EQ(table_.LiveServerAt({"id1", "process1", "a:2"}, now_), "");
  now_ += liveness_.lease;
  EXPECT_EQ(table_.LiveServerAt({"id1", "process1", "a:1"}, now_), "");
}

TEST_F(ServerTableTest, TellsOnceThatAServerIsLost) {
  Hear({"id1", "process1", "a:1"});
  EXPECT_THAT(table_.TakeLost(now_), IsEmpty());
  now_ += liveness_.lease + absl::Seconds(1);
  EXPECT_THAT(table_.TakeLost(now_), ElementsAre("a:1"));
  EXPECT_THAT(table_.TakeLost(now_), IsEmpty());
}

// Servers that were not heard for an hour are forgotten, but not those that a job waits for.
TEST_F(ServerTableTest, ForgetsOldServersThatNobodyUses) {
  table_.AddUnheard({"", "old:1"}, now_);
  Hear({"id1", "process1", "a:1"});
  Hear({"id2", "process2", "b:1"});
  Hear({"id2", "process3", "c:1"});  // Refused.
  now_ += absl::Hours(1) + absl::Seconds(1);
  table_.EraseOld([](const std::string& key) { return key == "id1"; }, now_);
  EXPECT_NE(table_.Find("id1"), nullptr);
  EXPECT_EQ(table_.Find("id2"), nullptr);
  EXPECT_EQ(table_.Find("old:1"), nullptr);
  EXPECT_THAT(table_.Statuses(now_), SizeIs(1));
}

TEST_F(ServerTableTest, AddsUpWhatServersHaveOnDisk) {
  Hear({"id1", "process1", "a:1"});
  Hear({"id2", "process2", "b:1"});
  table_.Find("id1")->disk_jobs = {{"job-1", 10}, {"job-2", 1}};
  table_.Find("id2")->disk_jobs = {{"job-1", 5}};
  EXPECT_THAT(table_.DiskBytes(), UnorderedElementsAre(testing::Pair("job-1", 15), testing::Pair("job-2", 1)));
}

// A center goes only to servers that were reached.
TEST_F(ServerTableTest, ChoosesServersThatWereReached) {
  Hear({"id1", "process1", "a:1"});
  Hear({"id2", "process2", "b:1"});
  EXPECT_THAT(table_.Choose(0, now_).servers, IsEmpty());
  table_.Find("id2")->reach = LiveServer::Reach::kReached;
  const ServerChoice choice = table_.Choose(1, now_);
  ASSERT_THAT(choice.servers, SizeIs(1)) << choice.reason;
  EXPECT_EQ(choice.servers[0].id, "id2");
}

TEST(HasShardOnTest, ComparesIdentities) {
  JobRecord job;
  job.servers = {{"id1", "a:1"}, {"", "b:1"}};
  EXPECT_TRUE(HasShardOn(job, "id1"));
  EXPECT_TRUE(HasShardOn(job, "b:1"));
  EXPECT_FALSE(HasShardOn(job, "a:1"));
}

}  // namespace
}  // namespace hooke
