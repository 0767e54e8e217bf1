// Files that earlier versions wrote are read, and become files of the present format. Their statements stand here as
// they were, so that a file of each format can be made.

#include "server/records/old_job_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/records/full_job.h"
#include "server/records/job_store.h"
#include "server/records/sqlite.h"
#include "server/records/sqlite_record_store.h"

namespace hooke {
namespace {

using testing::HasSubstr;

constexpr char kJobsAndGroups[] = R"sql(
CREATE TABLE jobs (
  job_id TEXT PRIMARY KEY,
  number INTEGER NOT NULL UNIQUE,
  submission_id TEXT NOT NULL UNIQUE,
  spec BLOB NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  submitted_unix_ms INTEGER NOT NULL,
  started_unix_ms INTEGER NOT NULL,
  first_step_unix_ms INTEGER NOT NULL,
  ended_unix_ms INTEGER NOT NULL,
  center BLOB
);
CREATE TABLE job_groups (
  job_id TEXT NOT NULL REFERENCES jobs (job_id),
  group_index INTEGER NOT NULL,
  task INTEGER NOT NULL,
  state INTEGER NOT NULL,
  reason TEXT NOT NULL,
  worker TEXT NOT NULL,
  site TEXT NOT NULL,
  incarnation INTEGER NOT NULL,
  last_event INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  best_step INTEGER NOT NULL,
  evaluated INTEGER NOT NULL,
  PRIMARY KEY (job_id, group_index)
) WITHOUT ROWID;
)sql";
constexpr char kServers1[] = R"sql(
CREATE TABLE job_servers (
  job_id TEXT NOT NULL REFERENCES jobs (job_id),
  shard INTEGER NOT NULL,
  address TEXT NOT NULL,
  PRIMARY KEY (job_id, shard)
) WITHOUT ROWID;
)sql";
constexpr char kServers2[] = R"sql(
CREATE TABLE job_servers (
  job_id TEXT NOT NULL REFERENCES jobs (job_id),
  shard INTEGER NOT NULL,
  address TEXT NOT NULL,
  server_id TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (job_id, shard)
) WITHOUT ROWID;
)sql";
constexpr char kParts[] = R"sql(
CREATE TABLE group_parts (
  job_id TEXT NOT NULL REFERENCES jobs (job_id),
  group_index INTEGER NOT NULL,
  part INTEGER NOT NULL,
  worker TEXT NOT NULL,
  first_rank INTEGER NOT NULL,
  ranks INTEGER NOT NULL,
  address TEXT NOT NULL,
  last_event INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  PRIMARY KEY (job_id, group_index, part)
) WITHOUT ROWID;
)sql";
constexpr char kForgotten[] = R"sql(
CREATE TABLE IF NOT EXISTS forgotten_jobs (
  number INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  job_key TEXT NOT NULL
);
)sql";

std::string Text(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) absl::StrAppend(&quoted, c == '\'' ? "''" : std::string(1, c));
  return quoted + "'";
}
std::string Blob(const std::string& bytes) { return absl::StrCat("x'", absl::BytesToHexString(bytes), "'"); }

std::string InsertJob(const JobRecord& job, int format) {
  std::string sql = absl::StrCat("INSERT INTO jobs VALUES (", Text(job.job_id), ", ", job.number, ", ",
                                 Text(job.submission_id), ", ", Blob(job.spec.SerializeAsString()), ", ", job.state,
                                 ", ", Text(job.reason), ", ", job.submitted_unix_ms, ", ", job.started_unix_ms, ", ",
                                 job.first_step_unix_ms, ", ", job.ended_unix_ms, ", ",
                                 job.center.has_value() ? Blob(job.center->SerializeAsString()) : "NULL", ");\n");
  for (const GroupRecord& group : job.groups) {
    const GroupPart first = group.parts.empty() ? GroupPart() : group.parts[0];
    absl::StrAppend(&sql, "INSERT INTO job_groups VALUES (", Text(job.job_id), ", ", group.group, ", ", group.task,
                    ", ");
    absl::StrAppend(&sql, group.state, ", ", Text(group.reason), ", ", Text(first.worker), ", ", Text(group.site), ", ",
                    group.incarnation, ", ", first.last_event, ", ", group.failures, ", ", group.best_step, ", ",
                    group.evaluated, ");\n");
    for (size_t i = 0; format >= 3 && group.parts.size() > 1 && i < group.parts.size(); ++i) {
      const GroupPart& part = group.parts[i];
      absl::StrAppend(&sql, "INSERT INTO group_parts VALUES (", Text(job.job_id), ", ", group.group, ", ", i, ", ");
      absl::StrAppend(&sql, Text(part.worker), ", ", part.first_rank, ", ", part.ranks, ", ", Text(part.address), ", ",
                      part.last_event, ", ", part.ended, ");\n");
    }
  }
  for (size_t i = 0; i < job.servers.size(); ++i) {
    absl::StrAppend(&sql, "INSERT INTO job_servers VALUES (", Text(job.job_id), ", ", i, ", ",
                    Text(job.servers[i].address), format >= 2 ? absl::StrCat(", ", Text(job.servers[i].id)) : "",
                    ");\n");
  }
  return sql;
}

// Returns FullJob(number) with only what a file of `format` can hold. Its first group has no part, as if no worker
// had it.
JobRecord JobOf(int format, uint64_t number) {
  JobRecord job = FullJob(number);
  for (JobServer& server : job.servers) server.id = format >= 2 ? server.id : "";
  if (format < 3) job.groups[1].parts = {{"w1", 0, 2, "", uint64_t{1} << 41}};
  job.groups[0].parts.clear();
  // The old formats stored no generations, and not how long the parts of a submission and of a start took.
  job.generations = {};
  job.preparing_us = job.upload_us = 0;
  for (GroupRecord& group : job.groups) {
    group.starts.clear();
    group.is_new = false;
    group.exchanged_step = 0;
  }
  // The old tables do not know how starts have ended.
  job.groups[1].cause.clear();
  job.groups[1].repeats = 0;
  job.groups[1].last_lines.clear();
  job.groups[1].end_progress.clear();
  return job;
}

class OldJobTablesTest : public testing::Test {
 protected:
  OldJobTablesTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~OldJobTablesTest() override { std::filesystem::remove_all(folder_); }

  // Writes a file of this format, whose first job has no groups and servers.
  void MakeFile(int format, int jobs = 2) {
    std::filesystem::remove(path_);
    std::string sql = absl::StrCat(kJobsAndGroups, format >= 2 ? kServers2 : kServers1, format >= 3 ? kParts : "",
                                   "PRAGMA application_id = 1215262571; PRAGMA user_version = ", format, ";");
    JobRecord first;
    first.number = 1;
    first.job_id = "early-1";
    absl::StrAppend(&sql, "BEGIN; ", InsertJob(first, format));
    for (int i = 2; i <= jobs; ++i) absl::StrAppend(&sql, InsertJob(JobOf(format, i), format));
    Execute(absl::StrCat(sql, "COMMIT;"));
  }
  void Execute(const std::string& sql) {
    const auto database = *SqliteDatabase::Open(path_);
    const absl::Status status = database->Execute(absl::StrCat("PRAGMA journal_mode = WAL; ", sql));
    ASSERT_TRUE(status.ok()) << status;
  }
  int64_t Number(const std::string& sql) { return *(*SqliteDatabase::Open(path_))->Number(sql); }
  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  absl::StatusOr<std::unique_ptr<JobStore>> Open() {
    absl::StatusOr<std::unique_ptr<RecordStore>> records = OpenSqliteRecordStore(path_);
    if (!records.ok()) return records.status();
    return JobStore::Open(*std::move(records));
  }

  const std::string folder_;
  const std::string path_ = folder_ + "/coordinator.db";
};

// Each format is read in every field that it had. Then the file has the present format, and stores all fields of that.
TEST_F(OldJobTablesTest, UpgradesEachFormat) {
  for (const int format : {1, 2, 3}) {
    SCOPED_TRACE(format);
    MakeFile(format);
    if (format > 1) Execute(absl::StrCat(kForgotten, "INSERT INTO forgotten_jobs VALUES (7, 'a-7', 'key')"));
    for (int opening = 1; opening <= 2; ++opening) {
      const StoredJobs stored = *(*Open())->Load();
      ASSERT_EQ(stored.jobs.size(), 2u);
      EXPECT_EQ(stored.jobs[0].job_id, "early-1");
      EXPECT_EQ(TextOf(stored.jobs[1]), TextOf(JobOf(format, 2)));
      ASSERT_EQ(stored.forgotten.size(), format > 1 ? 1u : 0u);
      for (const ForgottenJob& job : stored.forgotten) EXPECT_EQ(job.job_key, "key");
      EXPECT_EQ(Number("PRAGMA user_version"), 4);
      EXPECT_EQ(Number("SELECT count(*) FROM sqlite_master"), 1) << "only the table of records is left";
    }
    ASSERT_TRUE((*Open())->Write({FullJob(2)}, {}).ok());
    EXPECT_EQ(TextOf((*Open())->Load()->jobs.at(1)), TextOf(FullJob(2)));
  }
}

// An upgrade that meets damage says where, and leaves the file as it was, to the byte.
TEST_F(OldJobTablesTest, ADamagedFileStaysAsItWas) {
  const std::pair<const char*, const char*> damages[] = {
      {"UPDATE jobs SET spec = x'ff' WHERE number = 2", "(job fashion-2: its spec)"},
      {"UPDATE jobs SET state = 99 WHERE number = 2", "(job fashion-2: its state)"},
      {"UPDATE jobs SET state = 0 WHERE number = 2", "(record job/00000000000000000002/state has the unknown state 0)"},
      {"UPDATE jobs SET reason = CAST(x'ff' AS TEXT) WHERE number = 2",
       "(record job/00000000000000000002/state does not parse)"},
      {"UPDATE job_groups SET task = 0 WHERE group_index = 1",
       "(record job/00000000000000000002/group/0000000001 has the unknown task 0)"},
      {"UPDATE jobs SET center = x'ff' WHERE number = 2", "(job fashion-2: its accuracy)"},
      {"DELETE FROM job_groups WHERE group_index = 1", "(job fashion-2: its groups)"},
      {"UPDATE job_groups SET state = 99", "(job fashion-2: its groups)"},
      {"UPDATE group_parts SET group_index = 9", "(job fashion-2: its groups' parts)"},
      {"DELETE FROM jobs WHERE number = 2", "(groups or servers of a job that is not there)"}};
  for (const auto& [damage, message] : damages) {
    SCOPED_TRACE(damage);
    MakeFile(3);
    Execute(damage);
    const std::string before = Bytes();
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("job store ", path_, " is damaged ", message)));
    EXPECT_TRUE(Bytes() == before);
  }
}

// If the disk is full in the middle of an upgrade, the file stays as it was. When there is room, it is upgraded.
TEST_F(OldJobTablesTest, AFullDiskLeavesTheFileAsItWas) {
  MakeFile(3, 500);
  const std::string before = Bytes();
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  signal(SIGXFSZ, SIG_IGN);
  auto restore = absl::MakeCleanup([&unlimited] { setrlimit(RLIMIT_FSIZE, &unlimited); });
  const rlimit tight = {64 << 10, unlimited.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const absl::Status status = Open().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  EXPECT_TRUE(Bytes() == before);
  EXPECT_EQ((*Open())->Load()->jobs.size(), 500u);
}

}  // namespace
}  // namespace hooke
