#include "server/records/sqlite_record_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/records/full_job.h"
#include "server/records/job_store.h"
#include "server/records/record_store.h"
#include "server/records/sqlite.h"

namespace hooke {
namespace {

using testing::HasSubstr;

class SqliteRecordStoreTest : public testing::Test {
 protected:
  SqliteRecordStoreTest()
      : folder_(absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SqliteRecordStoreTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RecordStore> OpenRecords() {
    absl::StatusOr<std::unique_ptr<RecordStore>> store = OpenSqliteRecordStore(path_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::unique_ptr<JobStore> Open() { return *JobStore::Open(OpenRecords()); }
  // Returns the records whose keys begin with `prefix`.
  static Records All(RecordStore& store, const std::string& prefix) {
    Records records;
    EXPECT_TRUE(store
                    .Scan(prefix,
                          [&](absl::string_view key, absl::string_view value) {
                            records.emplace(key, value);
                            return absl::OkStatus();
                          })
                    .ok());
    return records;
  }
  void Execute(const std::string& path, const std::string& sql) {
    const absl::Status status = (*SqliteDatabase::Open(path))->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }

  static std::string Bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string folder_;
  const std::string path_ = folder_ + "/coordinator.db";
};

// Both stores do the same with the same changes: values of any bytes, removals by prefix, removals before puts.
TEST_F(SqliteRecordStoreTest, DoesWhatTheStoreInMemoryDoes) {
  const std::string bytes("\0\xff'\"", 4);
  const RecordChanges changes[] = {{{}, {{"a/1", "x"}, {"a/2", ""}, {"a/20", bytes}, {"b", "y"}}},
                                   {{}, {{"a/1", "z"}, {"c/1", "w"}}},
                                   {{"a/2", "nothing"}, {{"a/21", "later"}, {"b", bytes}}},
                                   {{"a/"}, {{"a/3", "new"}}},
                                   {{"a/", "b", "c"}, {}}};
  InMemoryRecordStore memory;
  for (const RecordChanges& change : changes) {
    for (int times = 0; times < 2; ++times) {
      ASSERT_TRUE(OpenRecords()->Write(change).ok());
      ASSERT_TRUE(memory.Write(change).ok());
      for (const char* prefix : {"a", "a/", "a/2", "b", "c/1", "d"}) {
        EXPECT_EQ(All(*OpenRecords(), prefix), All(memory, prefix)) << prefix;
      }
    }
  }
}

// A scan ends with the first error of its visitor, and the next one begins anew.
TEST_F(SqliteRecordStoreTest, AVisitorEndsTheScan) {
  const std::unique_ptr<RecordStore> store = OpenRecords();
  ASSERT_TRUE(store->Write({{}, {{"a/1", "x"}, {"a/2", "y"}}}).ok());
  int visits = 0;
  const auto refuse = [&](absl::string_view, absl::string_view) {
    ++visits;
    return absl::CancelledError("enough");
  };
  EXPECT_EQ(store->Scan("a/", refuse), absl::CancelledError("enough"));
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(All(*store, "a/").size(), 2u);
}

// After the store is opened again, it has the jobs in every field.
TEST_F(SqliteRecordStoreTest, KeepsJobs) {
  ASSERT_TRUE(Open()->Write({FullJob(7), FullJob(2)}, {{"a-1", 1, "key"}}).ok());
  const StoredJobs stored = *Open()->Load();
  ASSERT_EQ(stored.jobs.size(), 2u);
  EXPECT_EQ(TextOf(stored.jobs[0]), TextOf(FullJob(2)));
  EXPECT_EQ(TextOf(stored.jobs[1]), TextOf(FullJob(7)));
  EXPECT_EQ(stored.forgotten.at(0).job_key, "key");
}

// A file that is no database, or is damaged in the middle, is refused and left as it is. The error names the file.
TEST_F(SqliteRecordStoreTest, RefusesADamagedFile) {
  std::ofstream(path_) << std::string(8192, 'x');
  absl::Status status = OpenSqliteRecordStore(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("job store ", path_, " is damaged")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore it from a copy, or move it away"));
  EXPECT_EQ(std::filesystem::file_size(path_), 8192u);

  std::filesystem::remove(path_);
  std::vector<JobRecord> jobs;
  for (int i = 1; i <= 50; ++i) jobs.push_back(FullJob(i));
  ASSERT_TRUE(Open()->Write(jobs, {}).ok());
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(size_t{3} * 4096, '\xee');
  }
  status = OpenSqliteRecordStore(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

// If the bytes of a record do not parse, the error names the file and the record.
TEST_F(SqliteRecordStoreTest, RefusesARecordThatDoesNotParse) {
  ASSERT_TRUE(Open()->Write({FullJob(1)}, {}).ok());
  Execute(path_, "UPDATE records SET value = x'ff' WHERE key LIKE '%/state'");
  const absl::Status status = Open()->Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("job store ", path_,
                                     " is damaged (record job/00000000000000000001/state does not parse): restore")));
}

// A file of a newer format, and another program's database, are refused.
TEST_F(SqliteRecordStoreTest, RefusesOtherFormats) {
  Open();
  Execute(path_, "PRAGMA user_version = 5");
  absl::Status status = OpenSqliteRecordStore(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has format 5, this hooke-server knows format 4"));

  const std::string other = folder_ + "/other.db";
  Execute(other, "CREATE TABLE t (a)");
  const std::string before = Bytes(other);
  status = OpenSqliteRecordStore(other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no job store of Hooke"));
  EXPECT_TRUE(Bytes(other) == before) << "a refused file stays as it was";
}

// While one process has the store open, another one cannot open it. The error says so, and what to do.
TEST_F(SqliteRecordStoreTest, RefusesASecondProcess) {
  const std::unique_ptr<JobStore> store = Open();
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = OpenSqliteRecordStore(path_).status();
    const bool right = status.code() == absl::StatusCode::kFailedPrecondition &&
                       status.message() == absl::StrCat("job store ", path_,
                                                        " is in use by another hooke-server: stop that one, or choose "
                                                        "another folder with --state-dir");
    _exit(right ? 0 : 1);
  }
  int exit_status = -1;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
  EXPECT_TRUE(store->Write({FullJob(1)}, {}).ok());
}

// If the disk is full, the error names the file. What was stored stays, and storing works again when there is room.
TEST_F(SqliteRecordStoreTest, SaysThatTheDiskIsFull) {
  const std::unique_ptr<JobStore> store = Open();
  ASSERT_TRUE(store->Write({FullJob(1)}, {}).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  auto restore = absl::MakeCleanup([&before] { setrlimit(RLIMIT_FSIZE, &before); });
  const rlimit tight = {64 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::vector<JobRecord> jobs;
  for (int i = 2; i <= 500; ++i) jobs.push_back(FullJob(i));
  const absl::Status status = store->Write(jobs, {});
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.code() == absl::StatusCode::kInternal || status.code() == absl::StatusCode::kResourceExhausted)
      << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(store->Load()->jobs.size(), 1u);
  EXPECT_TRUE(store->Write(jobs, {}).ok());
  EXPECT_EQ(store->Load()->jobs.size(), 500u);
}

}  // namespace
}  // namespace hooke
