#include "server/coordinator/sqlite_job_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/coordinator/example_job.h"
#include "server/coordinator/records.h"

namespace hooke {
namespace {

using testing::HasSubstr;

JobRecord FullJob(uint64_t number) {
  JobRecord job;
  job.number = number;
  job.job_id = absl::StrCat("fashion-", number);
  job.submission_id = absl::StrCat("submission-", number);
  job.spec = ExampleJob();
  job.state = v1::JOB_STATE_EVALUATING;
  job.reason = "because, \"so\"; '";
  job.submitted_unix_ms = 1;
  job.started_unix_ms = 2;
  job.first_step_unix_ms = 3;
  job.ended_unix_ms = 4;
  job.servers = {{"id1", "b:1"}, {"", "a:2"}};
  job.center.emplace().set_accuracy(0.9);
  for (uint32_t i = 0; i < 3; ++i) {
    GroupRecord group;
    group.group = i;
    group.task = i == 2 ? v1::GroupStart::EVALUATE : v1::GroupStart::TRAIN;
    group.state = i == 2 ? v1::GROUP_STATE_RUNNING : v1::GROUP_STATE_FINISHED;
    group.reason = absl::StrCat("reason ", i);
    group.parts = {{absl::StrCat("w", i), 0, 2, "", uint64_t{1} << 40}};
    if (i == 1) {
      group.parts[0] = {"w1", 0, 1, "10.0.0.1", uint64_t{1} << 41, true};
      group.parts.push_back({"w2", 1, 1, "10.0.0.2", 7});
    }
    group.site = "hpc";
    group.incarnation = i + 1;
    group.failures = i;
    group.best_step = 100 + i;
    group.evaluated = i == 2;
    job.groups.push_back(group);
  }
  return job;
}

std::string Text(const JobRecord& job) {
  std::string text = absl::StrCat(job.job_id, "|", job.number, "|", job.submission_id, "|", job.spec.ShortDebugString(),
                                  "|", job.state, "|", job.reason, "|", job.submitted_unix_ms, "|", job.started_unix_ms,
                                  "|", job.first_step_unix_ms, "|", job.ended_unix_ms, "|",
                                  job.center.has_value() ? job.center->ShortDebugString() : "none");
  for (const JobServer& server : job.servers) absl::StrAppend(&text, "|", server.id, "@", server.address);
  for (const GroupRecord& g : job.groups) {
    absl::StrAppend(&text, "\n", g.group, "|", g.task, "|", g.state, "|", g.reason, "|", PlaceText(g), "|", g.site,
                    "|");
    for (const GroupPart& p : g.parts) absl::StrAppend(&text, p.address, "|", p.last_event, "|", p.ended, "|");
    absl::StrAppend(&text, g.incarnation, "|", g.failures, "|", g.best_step, "|", g.evaluated);
  }
  return text;
}

class SqliteJobStoreTest : public testing::Test {
 protected:
  SqliteJobStoreTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SqliteJobStoreTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<JobStore> Open() {
    absl::StatusOr<std::unique_ptr<JobStore>> store = OpenSqliteJobStore(path_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  const std::string folder_;
  const std::string path_ = folder_ + "/coordinator.db";
};

// After the store is opened again, Load returns the stored jobs in order of number. They are equal in every field.
TEST_F(SqliteJobStoreTest, KeepsJobs) {
  JobRecord early;
  early.number = 1;
  early.job_id = "early-1";
  early.submission_id = "s";
  early.spec = ExampleJob();
  ASSERT_TRUE(Open()->Put({FullJob(7), early}).ok());
  const std::vector<JobRecord> jobs = *Open()->Load();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(Text(jobs[0]), Text(early));
  EXPECT_EQ(Text(jobs[1]), Text(FullJob(7)));
}

// Putting a job again replaces the fields that may change, and adds groups.
TEST_F(SqliteJobStoreTest, ReplacesAJob) {
  std::unique_ptr<JobStore> store = Open();
  JobRecord job = FullJob(1);
  job.groups.resize(2);
  job.center.reset();
  job.servers.clear();
  ASSERT_TRUE(store->Put({job}).ok());
  ASSERT_TRUE(store->Put({FullJob(1)}).ok());
  ASSERT_TRUE(store->Put({FullJob(1)}).ok());
  EXPECT_EQ(Text(store->Load()->at(0)), Text(FullJob(1)));
}

// If one job of a Put is wrong, none of its jobs has changed.
TEST_F(SqliteJobStoreTest, PutsAllOrNothing) {
  std::unique_ptr<JobStore> store = Open();
  JobRecord same_submission = FullJob(2);
  same_submission.submission_id = "submission-1";
  EXPECT_FALSE(store->Put({FullJob(1), same_submission}).ok());
  EXPECT_TRUE(store->Load()->empty());
  EXPECT_TRUE(store->Put({FullJob(1)}).ok());
}

// A file that is no database, or is damaged in the middle, is refused and left as it is. The error names the file.
TEST_F(SqliteJobStoreTest, RefusesADamagedFile) {
  std::ofstream(path_) << std::string(8192, 'x');
  absl::Status status = OpenSqliteJobStore(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("job store ", path_, " is damaged")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore it from a copy, or move it away"));
  EXPECT_EQ(std::filesystem::file_size(path_), 8192u);

  std::filesystem::remove(path_);
  std::vector<JobRecord> jobs;
  for (int i = 1; i <= 50; ++i) jobs.push_back(FullJob(i));
  ASSERT_TRUE(Open()->Put(jobs).ok());
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(size_t{3} * 4096, '\xee');
  }
  status = OpenSqliteJobStore(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

// If the bytes of a job do not parse, the error names the job.
TEST_F(SqliteJobStoreTest, RefusesARowThatDoesNotParse) {
  ASSERT_TRUE(Open()->Put({FullJob(1)}).ok());
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "UPDATE jobs SET spec = x'ff'", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const absl::Status status = Open()->Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is damaged (job fashion-1: its spec)"));
}

// A store of format 1, which knew servers by address only, is read: its jobs' servers have no identity yet. Reading it
// turns the file into the present format.
TEST_F(SqliteJobStoreTest, UpgradesFormat1) {
  JobRecord job = FullJob(1);
  ASSERT_TRUE(Open()->Put({job}).ok());
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  constexpr char kBackTo1[] =
      "ALTER TABLE job_servers DROP COLUMN server_id; DROP TABLE group_parts; PRAGMA user_version = 1";
  ASSERT_EQ(sqlite3_exec(database, kBackTo1, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  EXPECT_EQ(sqlite3_close(database), SQLITE_OK);
  for (JobServer& server : job.servers) server.id.clear();
  job.groups[1].parts = {{"w1", 0, 2, "", uint64_t{1} << 41}};
  EXPECT_EQ(Text(Open()->Load()->at(0)), Text(job));
  ASSERT_TRUE(Open()->Put({FullJob(1)}).ok());
  EXPECT_EQ(Text(Open()->Load()->at(0)), Text(FullJob(1)));
}

// A store of format 2, which knew groups of one worker only, is read. From then on it can store groups on several
// workers.
TEST_F(SqliteJobStoreTest, UpgradesFormat2) {
  JobRecord job = FullJob(1);
  job.groups[1].parts = {{"w1", 0, 2, "", 9}};
  ASSERT_TRUE(Open()->Put({job}).ok());
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  constexpr char kBackTo2[] = "DROP TABLE group_parts; PRAGMA user_version = 2";
  ASSERT_EQ(sqlite3_exec(database, kBackTo2, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  EXPECT_EQ(sqlite3_close(database), SQLITE_OK);
  EXPECT_EQ(Text(Open()->Load()->at(0)), Text(job));
  ASSERT_TRUE(Open()->Put({FullJob(1)}).ok());
  EXPECT_EQ(Text(Open()->Load()->at(0)), Text(FullJob(1)));
}

// A file of a newer format, and another program's database, are refused.
TEST_F(SqliteJobStoreTest, RefusesOtherFormats) {
  Open();
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA user_version = 4", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_close(database), SQLITE_OK);
  absl::Status status = OpenSqliteJobStore(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has format 4, this hooke-server knows format 3"));

  const std::string other = folder_ + "/other.db";
  ASSERT_EQ(sqlite3_open(other.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "CREATE TABLE t (a)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  status = OpenSqliteJobStore(other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no job store of Hooke"));
}

// While one process has the store open, another one cannot open it. The error says so, and what to do.
TEST_F(SqliteJobStoreTest, RefusesASecondProcess) {
  std::unique_ptr<JobStore> store = Open();
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = OpenSqliteJobStore(path_).status();
    const bool right = status.code() == absl::StatusCode::kFailedPrecondition &&
                       status.message() == absl::StrCat("job store ", path_,
                                                        " is in use by another hooke-server: stop that one, or choose "
                                                        "another folder with --state-dir");
    _exit(right ? 0 : 1);
  }
  int exit_status = -1;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
  EXPECT_TRUE(store->Put({FullJob(1)}).ok());
}

// Forgotten jobs are removed with their groups and servers, and other jobs stay. The traces of the forgotten jobs stay.
// Forgetting the same jobs again changes nothing.
TEST_F(SqliteJobStoreTest, Forgets) {
  std::unique_ptr<JobStore> store = Open();
  ASSERT_TRUE(store->Put({FullJob(1), FullJob(2), FullJob(3)}).ok());
  EXPECT_THAT(*store->LoadForgotten(), testing::IsEmpty());
  EXPECT_TRUE(store->Forget({{"fashion-1", 1, "k1"}, {"fashion-3", 3, "k3"}, {"unknown-9", 9, "k9"}}).ok());
  EXPECT_TRUE(store->Forget({{"fashion-1", 1, "k1"}}).ok());
  store.reset();
  store = Open();
  const std::vector<ForgottenJob> forgotten = *store->LoadForgotten();
  ASSERT_EQ(forgotten.size(), 3u);
  EXPECT_EQ(forgotten[1].job_id, "fashion-3");
  EXPECT_EQ(forgotten[1].number, 3u);
  EXPECT_EQ(forgotten[1].job_key, "k3");
  const std::vector<JobRecord> left = *store->Load();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(Text(left[0]), Text(FullJob(2)));
  EXPECT_TRUE(store->Put({FullJob(1)}).ok());  // No row of the removed job is left to prevent this.
  EXPECT_EQ(store->Load()->at(0).groups.size(), FullJob(1).groups.size());
}

// If the disk is full, the error names the file. What was stored stays, and storing works again when there is room.
TEST_F(SqliteJobStoreTest, SaysThatTheDiskIsFull) {
  std::unique_ptr<JobStore> store = Open();
  ASSERT_TRUE(store->Put({FullJob(1)}).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  auto restore = absl::MakeCleanup([&before] { setrlimit(RLIMIT_FSIZE, &before); });
  const rlimit tight = {64 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::vector<JobRecord> jobs;
  for (int i = 2; i <= 500; ++i) jobs.push_back(FullJob(i));
  const absl::Status status = store->Put(jobs);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.code() == absl::StatusCode::kInternal || status.code() == absl::StatusCode::kResourceExhausted)
      << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(store->Load()->size(), 1u);
  EXPECT_TRUE(store->Put(jobs).ok());
  EXPECT_EQ(store->Load()->size(), 500u);
}

}  // namespace
}  // namespace hooke
