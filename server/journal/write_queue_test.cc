// Shows which batch stores a change, which changes a failure puts back, and what is dropped if the writer is too slow.

#include "server/journal/write_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace hooke {
namespace {

constexpr absl::Time kNow = absl::UnixEpoch();

class WriteQueueTest : public testing::Test {
 protected:
  void Change(const std::string& job_id) {
    jobs_[job_id].job_id = job_id;
    Effects effects;
    effects.jobs.insert(job_id);
    queue_.Add(effects);
  }
  WriteBatch Take(bool may_change_jobs = true) {
    const auto find = [this](const std::string& job_id) {
      auto job = jobs_.find(job_id);
      return job == jobs_.end() ? nullptr : &job->second;
    };
    return queue_.Take(may_change_jobs, find, kNow);
  }
  void Say(const std::string& job_id, const std::string& line) {
    Effects effects;
    effects.log.push_back({job_id, line, kNow, false});
    queue_.Add(effects);
  }

  std::map<std::string, JobRecord> jobs_;
  WriteQueue queue_{{.log_bytes_max = 10000, .profile_bytes_max = 10000}};
};

// A change belongs to the next batch that is taken. If that batch cannot be stored, the change belongs to the batch
// after it.
TEST_F(WriteQueueTest, NamesTheBatchThatStoresAChange) {
  EXPECT_EQ(queue_.BatchOf("a"), 0u);
  Change("a");
  EXPECT_EQ(queue_.BatchOf("a"), 1u);
  EXPECT_EQ(Take().jobs.size(), 1u);
  EXPECT_EQ(queue_.BatchOf("a"), 1u);
  Change("a");
  Change("b");
  EXPECT_EQ(queue_.BatchOf("a"), 2u);
  queue_.Done(/*changes_stored=*/false);
  EXPECT_EQ(queue_.stored(), 0u);
  EXPECT_EQ(Take().jobs.size(), 2u);
  queue_.Done(/*changes_stored=*/true);
  EXPECT_EQ(queue_.stored(), 2u);
  EXPECT_EQ(queue_.BatchOf("a"), 0u);
  EXPECT_FALSE(queue_.HasWork(true));
}

// A drain waits for a batch as a job does. After a batch that failed, a newer drain of the same worker wins.
TEST_F(WriteQueueTest, StoresTheLastDrain) {
  const auto drain = [this](v1::Drain kind) {
    Effects effects;
    effects.drains["w"] = kind;
    queue_.Add(effects);
  };
  drain(v1::DRAIN_FINISH);
  EXPECT_FALSE(queue_.HasWork(false));
  EXPECT_EQ(queue_.BatchOfDrain("w"), 1u);
  EXPECT_TRUE(Take().ChangesRecords());
  drain(v1::DRAIN_NOW);
  queue_.Done(/*changes_stored=*/false);
  EXPECT_EQ(queue_.BatchOfDrain("w"), 2u);
  EXPECT_EQ(Take().drains.at("w"), v1::DRAIN_NOW);
  queue_.Done(/*changes_stored=*/true);
  EXPECT_EQ(queue_.BatchOfDrain("w"), 0u);
  EXPECT_EQ(queue_.stored(), 2u);
}

// While changed jobs cannot be stored, the queue still hands out submissions and log lines. Their batches leave the
// changed jobs waiting.
TEST_F(WriteQueueTest, GoesOnWithoutTheChanges) {
  Change("a");
  EXPECT_FALSE(queue_.HasWork(false));
  Say("a", "x");
  Effects effects;
  effects.submissions.emplace_back().job_id = "new";
  queue_.Add(effects);
  EXPECT_TRUE(queue_.HasWork(false));
  EXPECT_TRUE(queue_.HasLogOf("a"));
  const WriteBatch batch = Take(false);
  EXPECT_TRUE(batch.jobs.empty());
  EXPECT_EQ(batch.submissions.size(), 1u);
  EXPECT_EQ(batch.log.size(), 1u);
  EXPECT_TRUE(queue_.HasLogOf("a"));
  EXPECT_FALSE(queue_.WithdrawSubmission("new").has_value()) << "the writer has it";
  queue_.Done(true);
  EXPECT_FALSE(queue_.HasLogOf("a"));
  EXPECT_EQ(queue_.stored(), 0u);
  EXPECT_EQ(queue_.BatchOf("a"), 1u);
}

// If the disk takes no lines, the queue keeps lines up to a limit of bytes and drops the others. At the gap, each job's
// log says how many lines are missing.
TEST_F(WriteQueueTest, SaysHowManyLogLinesWereDropped) {
  Say("quiet", "one");
  for (int line = 0; line < 100; ++line) Say("loud", std::string(1000, 'x'));
  Say("loud", "short");
  const WriteBatch batch = Take();
  size_t kept = 0;
  for (const Effects::LogEntry& entry : batch.log) kept += entry.line.size() == 1000 ? 1 : 0;
  EXPECT_GT(kept, 5u);
  EXPECT_LT(kept, 10u);
  EXPECT_EQ(batch.log.back().job_id, "loud");
  EXPECT_EQ(batch.log.back().line,
            absl::StrCat("coordinator [", 101 - kept, " lines dropped: more than 10000 bytes waited to be written]"));
  Say("loud", "again");
  EXPECT_EQ(Take().log.size(), 1u);
}

// Only the last profile of each rank waits. All waiting profiles together have at most a limit of bytes.
TEST_F(WriteQueueTest, BoundsProfiles) {
  v1::RankProfile profile;
  profile.set_machine(std::string(3000, 'm'));
  for (uint32_t rank = 0; rank < 100; ++rank) {
    for (int again = 0; again < 3; ++again) {
      Effects effects;
      effects.profiles[{"a", 0, rank}] = profile.SerializeAsString();
      queue_.Add(effects);
    }
  }
  EXPECT_TRUE(queue_.HasProfilesOf("a"));
  const WriteBatch batch = Take();
  EXPECT_TRUE(queue_.HasProfilesOf("a"));
  queue_.Done(true);
  EXPECT_FALSE(queue_.HasProfilesOf("a"));
  EXPECT_GE(batch.profiles.size(), 2u);
  EXPECT_LE(batch.profiles.size(), 3u);
  EXPECT_EQ(batch.profiles.count({"a", 0, 0}), 1u);
}

}  // namespace
}  // namespace hooke
