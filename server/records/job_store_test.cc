// The JobStore on a store in memory: what it writes, and what it refuses.

#include "server/records/job_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/records/full_job.h"
#include "server/records/job_records.h"
#include "server/records/record_store.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class JobStoreTest : public testing::Test {
 protected:
  std::unique_ptr<JobStore> Open() { return *JobStore::Open(records_); }

  const std::shared_ptr<InMemoryRecordStore> records_ = std::make_shared<InMemoryRecordStore>();
};

// A store that is opened again has the jobs in order of number, and the traces of forgotten ones.
TEST_F(JobStoreTest, KeepsJobsAndTraces) {
  EXPECT_THAT(Open()->Load()->jobs, IsEmpty());
  ASSERT_TRUE(Open()->Write({FullJob(10), FullJob(9), FullJob(1)}, {}).ok());
  ASSERT_TRUE(Open()->Write({}, {{"fashion-1", 1, "k1"}, {"unknown-8", 8, "k8"}}).ok());
  ASSERT_TRUE(Open()->Write({}, {{"fashion-1", 1, "k1"}}).ok()) << "again";
  const StoredJobs stored = *Open()->Load();
  ASSERT_EQ(stored.jobs.size(), 2u);
  EXPECT_EQ(TextOf(stored.jobs[0]), TextOf(FullJob(9)));
  EXPECT_EQ(TextOf(stored.jobs[1]), TextOf(FullJob(10)));
  ASSERT_EQ(stored.forgotten.size(), 2u);
  EXPECT_EQ(stored.forgotten[1].job_id, "unknown-8");
  EXPECT_EQ(stored.forgotten[1].number, 8u);
  EXPECT_EQ(stored.forgotten[1].job_key, "k8");
}

// The store has the last drain of each worker, and none that was taken back. A record is damaged if it names another
// worker than its key, or has a kind of drain that is never stored.
TEST_F(JobStoreTest, KeepsDrains) {
  ASSERT_TRUE(Open()->Write({}, {}, {{"w", v1::DRAIN_FINISH}, {"w1", v1::DRAIN_FINISH}}).ok());
  ASSERT_TRUE(Open()->Write({}, {}, {{"w1", v1::DRAIN_NOW}, {"w2", v1::DRAIN_NOW}}).ok());
  ASSERT_TRUE(Open()->Write({}, {}, {{"w", v1::DRAIN_NONE}, {"w2", v1::DRAIN_NONE}}).ok());
  const StoredJobs stored = *Open()->Load();
  ASSERT_EQ(stored.drains.size(), 1u);
  EXPECT_EQ(stored.drains[0].worker, "w1");
  EXPECT_EQ(stored.drains[0].drain, v1::DRAIN_NOW);
  for (const WorkerDrain& wrong : {WorkerDrain{"other", v1::DRAIN_NOW}, WorkerDrain{"w1", v1::DRAIN_NONE}}) {
    ASSERT_TRUE(records_->Write({{}, {{DrainKey("w1"), DrainRecord(wrong)}}}).ok());
    EXPECT_EQ(Open()->Load().status().code(), absl::StatusCode::kDataLoss);
  }
}

// Writing a job again replaces what has changed, and adds groups.
TEST_F(JobStoreTest, ReplacesAJob) {
  JobRecord job = FullJob(1);
  job.groups.resize(2);
  job.center.reset();
  job.servers.clear();
  ASSERT_TRUE(Open()->Write({job}, {}).ok());
  ASSERT_TRUE(Open()->Write({FullJob(1)}, {}).ok());
  EXPECT_EQ(TextOf(Open()->Load()->jobs.at(0)), TextOf(FullJob(1)));
}

// A change of a job with 1,000 groups writes only the records that it changes.
TEST_F(JobStoreTest, WritesOnlyChangedRecords) {
  JobRecord job = FullJob(1);
  while (job.groups.size() < 1000) {
    job.groups.push_back(job.groups[1]);
    job.groups.back().group = static_cast<uint32_t>(job.groups.size() - 1);
  }
  const std::unique_ptr<JobStore> store = Open();
  const auto puts_of = [&](const JobRecord& changed) {
    const uint64_t before = records_->puts();
    EXPECT_TRUE(store->Write({changed}, {}).ok());
    EXPECT_EQ(TextOf(store->Load()->jobs.at(0)), TextOf(changed));
    return records_->puts() - before;
  };
  EXPECT_EQ(puts_of(job), 1003u) << "groups, servers, state, submission";
  EXPECT_EQ(puts_of(job), 0u);
  ++job.groups[500].parts[1].last_event;
  EXPECT_EQ(puts_of(job), 1u);
  job.groups[999].state = v1::GROUP_STATE_FAILED;
  job.reason = "group 999 failed";
  EXPECT_EQ(puts_of(job), 2u);
  job.servers[1].address = "c:3";
  EXPECT_EQ(puts_of(job), 1u);
}

// After a Write that failed, the next one writes everything that the failed one would have.
TEST_F(JobStoreTest, WritesAgainWhatFailed) {
  const std::unique_ptr<JobStore> store = Open();
  ASSERT_TRUE(store->Write({FullJob(1), FullJob(2)}, {}).ok());
  records_->FailWith(absl::InternalError("broken disk"));
  JobRecord job = FullJob(1);
  job.groups[0].reason = "changed";
  EXPECT_EQ(store->Write({job}, {{"fashion-2", 2, "k"}}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Open()->Load()->jobs.size(), 2u);
  records_->FailWith(absl::OkStatus());
  ASSERT_TRUE(store->Write({job}, {{"fashion-2", 2, "k"}}).ok());
  const StoredJobs stored = *Open()->Load();
  ASSERT_EQ(stored.jobs.size(), 1u);
  EXPECT_EQ(TextOf(stored.jobs[0]), TextOf(job));
  EXPECT_EQ(stored.forgotten.size(), 1u);
}

// The use of owners is stored, replaced and removed. A record that does not fit its key is damaged.
TEST_F(JobStoreTest, KeepsUsesOfOwners) {
  ASSERT_TRUE(Open()->Write({}, {}, {}, {{"anna", 12.5, 1000}, {"", 3, 2000}}).ok());
  ASSERT_TRUE(Open()->Write({}, {}, {}, {{"anna", 25, 3000}, {"", 0, 4000}}).ok());
  const std::vector<OwnerUse> uses = Open()->Load()->uses;
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].owner, "anna");
  EXPECT_EQ(uses[0].slot_seconds, 25);
  EXPECT_EQ(uses[0].unix_ms, 3000);
  for (const OwnerUse& wrong : {OwnerUse{"ben", 1, 1}, OwnerUse{"anna", -1, 1}}) {
    ASSERT_TRUE(records_->Write({{}, {{UseKey("anna"), UseRecord(wrong)}}}).ok());
    EXPECT_EQ(Open()->Load().status().code(), absl::StatusCode::kDataLoss);
  }
}

// Only the newest traces are kept.
TEST_F(JobStoreTest, TrimsTraces) {
  std::vector<ForgottenJob> jobs;
  for (uint64_t number = 1; number <= ForgottenJob::kKeptMax + 3; ++number) {
    jobs.push_back({absl::StrCat("a-", number), number, "k"});
  }
  ASSERT_TRUE(Open()->Write({}, jobs).ok());
  EXPECT_EQ(Open()->Load()->forgotten.size(), ForgottenJob::kKeptMax);
  int stored = 0;
  ASSERT_TRUE(records_
                  ->Scan(kForgottenPrefix,
                         [&](absl::string_view, absl::string_view) {
                           ++stored;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(stored, ForgottenJob::kKeptMax);
  EXPECT_EQ(Open()->Load()->forgotten[0].number, 4u);
}

// Damage and a newer format are refused with the store's name, the record's key and what to do.
TEST_F(JobStoreTest, RefusesWhatItCannotRead) {
  ASSERT_TRUE(Open()->Write({FullJob(1), FullJob(2)}, {{"fashion-3", 3, "k"}}).ok());
  const std::string state = absl::StrCat(JobPrefix(1), "state");
  const std::string good = RecordsOf(FullJob(1))[state];
  ASSERT_TRUE(records_->Write({{}, {{state, "\xff"}}}).ok());
  absl::Status status = Open()->Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            "job store in memory is damaged (record job/00000000000000000001/state does not parse): restore it from a "
            "copy, or move it away to start without jobs");

  ASSERT_TRUE(records_->Write({{}, {{state, good}, {ForgottenKey(3), "\xff"}}}).ok());
  EXPECT_THAT(std::string(Open()->Load().status().message()), HasSubstr("record forgotten/00000000000000000003"));

  ASSERT_TRUE(records_->Write({{}, {{kFormatKey, "\x08\x05"}}}).ok());
  status = JobStore::Open(records_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job store in memory has format 5, this hooke-server knows"));

  ASSERT_TRUE(records_->Write({{kFormatKey}, {}}).ok());
  status = JobStore::Open(records_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job store in memory is damaged (no record format)"));
}

}  // namespace
}  // namespace hooke
