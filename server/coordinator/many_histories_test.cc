// Shows that the histories of very many jobs stay within their bound in a real store. They add little to the time and
// the memory that the start of the coordinator takes. Prints what it measures; docs/see.md has the figures.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clocks/cores_used.h"
#include "clocks/instant.h"
#include "server/cluster/example_job.h"
#include "server/coordinator/coordinator.h"
#include "server/history/history_book.h"
#include "server/history/history_records.h"
#include "server/journal/job_log.h"
#include "server/records/job_store.h"
#include "server/records/sqlite_record_store.h"
#include "spdlog/sinks/null_sink.h"
#include "spdlog/spdlog.h"

namespace hooke {
namespace {

constexpr int64_t kThen = 1700000000000;

// A point in which each value takes as many bytes as it ever does.
HistoryPoint PointOf(uint64_t i) {
  HistoryPoint point;
  point.unix_ms = kThen + static_cast<int64_t>(1000 * i);
  point.step = (uint64_t{1} << 40) + i;
  point.epoch = 1e9 / 3;
  point.loss = 1.0 / static_cast<double>(i + 3);
  point.samples_per_s = 1e9 / 7;
  point.exchange_ms = 1e9 / 9;
  point.accuracy = 1.0 / 3;
  point.center_distance = 1e-9 / 3;
  point.staleness = 1e9 / 11;
  point.computing_ms = point.collectives_ms = point.exchanging_ms = StoredMilliseconds(1e9);
  return point;
}

Records HistoryOf(uint64_t number, uint32_t groups, size_t points) {
  std::vector<HistoryPoint> older, newer;
  for (uint64_t i = 0; i < points; ++i) (i < points * 3 / 4 ? older : newer).push_back(PointOf(i));
  Records records;
  for (uint32_t series = 0; series <= groups; ++series) {
    const SeriesKey key = series < groups ? series : kCenterSeries;
    records[OlderKey(number, key)] = HistoryRecord(older);
    records[NewerKey(number, key)] = HistoryRecord(newer);
  }
  return records;
}

JobRecord EndedJob(uint64_t number) {
  JobRecord job;
  job.job_id = absl::StrCat("fashion-", number);
  job.number = number;
  job.submission_id = absl::StrCat("s", number);
  job.spec = ExampleJob({2, 1});
  job.state = v1::JOB_STATE_SUCCEEDED;
  job.reason = "succeeded";
  job.submitted_unix_ms = kThen;
  job.ended_unix_ms = kThen + 1000;
  for (uint32_t i = 0; i < 2; ++i) {
    GroupRecord& group = job.groups.emplace_back();
    group.group = i;
    group.state = v1::GROUP_STATE_FINISHED;
    group.reason = "finished";
  }
  return job;
}

uint64_t ResidentBytes() {
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

class ManyHistoriesTest : public ::testing::Test {
 protected:
  ManyHistoriesTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ManyHistoriesTest() override { std::filesystem::remove_all(folder_); }

  std::string Database() const { return folder_ + "/jobs.db"; }

  // Stores `jobs` ended jobs of two groups. Each series of a job's history has `points` points; 0: there is no history.
  void Store(uint64_t jobs, size_t points) {
    absl::StatusOr<std::unique_ptr<RecordStore>> records = OpenSqliteRecordStore(Database());
    ASSERT_TRUE(records.ok()) << records.status();
    absl::StatusOr<std::unique_ptr<JobStore>> store = JobStore::Open(*std::move(records));
    ASSERT_TRUE(store.ok()) << store.status();
    constexpr uint64_t kAtOnce = 200;
    for (uint64_t first = 1; first <= jobs; first += kAtOnce) {
      std::vector<JobRecord> ended;
      Records histories;
      for (uint64_t number = first; number < std::min(first + kAtOnce, jobs + 1); ++number) {
        ended.push_back(EndedJob(number));
        if (points > 0) histories.merge(HistoryOf(number, 2, points));
      }
      ASSERT_TRUE((*store)->Write(ended, {}).ok());
      if (points == 0) continue;
      ASSERT_TRUE((*store)->WriteHistory(std::move(histories)).ok());
    }
  }

  absl::StatusOr<std::unique_ptr<Coordinator>> Start() const {
    absl::StatusOr<std::unique_ptr<RecordStore>> store = OpenSqliteRecordStore(Database());
    if (!store.ok()) return store.status();
    absl::StatusOr<JobLog> log = JobLog::Open({folder_ + "/logs"});
    if (!log.ok()) return log.status();
    CoordinatorOptions options;
    options.store = *std::move(store);
    options.log = std::make_shared<JobLog>(*std::move(log));
    options.logger = std::make_shared<spdlog::logger>("many", std::make_shared<spdlog::sinks::null_sink_mt>());
    options.cluster.keep.jobs_max = 20000;
    return Coordinator::Create(std::move(options), InstantNow());
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/many_histories_test");
};

// A history of the most points takes less than 2 MiB of the store's file, with all that SQLite adds, whatever the
// number of its groups is.
TEST_F(ManyHistoriesTest, TheLargestHistoryTakesLessThanTwoMebibytes) {
  uint64_t largest = 0;
  std::vector<uint32_t> counts = {1, 31, 300, 301, 1024};
  for (uint32_t groups = 32; groups <= 116; groups += 4) counts.push_back(groups);
  for (const uint32_t groups : counts) {
    std::filesystem::remove(Database());
    Store(1, 0);
    const uint64_t before = std::filesystem::file_size(Database());
    {
      absl::StatusOr<std::unique_ptr<RecordStore>> store = OpenSqliteRecordStore(Database());
      ASSERT_TRUE(store.ok()) << store.status();
      const size_t points = SeriesPointsMax(groups);
      ASSERT_TRUE((*store)->Write({{}, HistoryOf(1, groups, points)}).ok());
    }
    const uint64_t bytes = std::filesystem::file_size(Database()) - before;
    EXPECT_LT(bytes, uint64_t{2} << 20) << groups << " groups";
    largest = std::max(largest, bytes);
  }
  std::cout << "the largest history takes " << largest / 1024 << " KiB" << std::endl;
  EXPECT_GT(largest, uint64_t{3} << 19) << "less than 1.5 MiB: more points would fit";
}

// With the histories of 10,000 jobs the coordinator starts in at most about three times the CPU time as without. It
// does not load the histories into memory, and can read any one of them.
TEST_F(ManyHistoriesTest, TenThousandJobs) {
  constexpr uint64_t kJobs = 10000;
  constexpr size_t kPoints = 100;
  Store(kJobs, 0);
  const uint64_t without = std::filesystem::file_size(Database());
  // CPU time, to which other work on the machine adds little.
  const absl::Duration before = ProcessCpuTime();
  { ASSERT_TRUE(Start().ok()); }
  const absl::Duration start_without = ProcessCpuTime() - before;
  Store(kJobs, kPoints);
  const uint64_t each = (std::filesystem::file_size(Database()) - without) / kJobs;
  const uint64_t resident = ResidentBytes();
  const absl::Duration stored = ProcessCpuTime();
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Start();
  const absl::Duration start = ProcessCpuTime() - stored;
  ASSERT_TRUE(coordinator.ok()) << coordinator.status();
  const uint64_t memory = ResidentBytes() - std::min(ResidentBytes(), resident);
  absl::Time begin = absl::Now();
  const absl::StatusOr<std::vector<v1::HistoryPoint>> points = (*coordinator)->ReadHistory("fashion-5000");
  const absl::Duration read = absl::Now() - begin;
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_EQ(points->size(), 3 * kPoints);
  begin = absl::Now();
  const JobRows rows = (*coordinator)->RowsSince(0, 2000);
  const absl::Duration listed = absl::Now() - begin;
  EXPECT_EQ(rows.rows.size(), 2000u);
  EXPECT_EQ(rows.left_out, kJobs - 2000);
  std::cout << kJobs << " jobs: " << each << " bytes each for a history of " << 3 * kPoints << " points; start in "
            << start << " of CPU time, without histories " << start_without << "; " << memory / 1024 / 1024
            << " MiB of memory for the second start; one history read in " << read << ", 2000 rows in " << listed
            << std::endl;
  // A point takes at most 98 bytes, and SQLite rounds each of six records up to whole pages.
  EXPECT_LT(each, uint64_t{3} * kPoints * 98 + uint64_t{6} * 4096);
  EXPECT_LT(start, 3 * start_without + absl::Seconds(1));
  // 10,000 histories of 300 points would take 200 MiB or more.
  EXPECT_LT(memory, uint64_t{120} << 20);
}

}  // namespace
}  // namespace hooke
