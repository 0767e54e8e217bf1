// Lists of jobs by what has changed, and the views of single jobs.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/coordinator/coordinator_fixture.h"

namespace hooke {
namespace {

class JobRowsTest : public CoordinatorFixture {
 protected:
  std::vector<std::string> IdsSince(uint64_t version, size_t rows_max = 100) {
    std::vector<std::string> ids;
    for (const JobRow& row : coordinator_->RowsSince(version, rows_max).rows) ids.push_back(row.job_id);
    return ids;
  }
  using Ids = std::vector<std::string>;
};

// Whoever has a version gets only what is new or changed since then. A list that lost a job comes whole.
TEST_F(JobRowsTest, OnlyWhatHasChanged) {
  const std::string first = Submit(), second = Submit();
  const JobRows all = coordinator_->RowsSince(0, 100);
  EXPECT_TRUE(all.whole);
  EXPECT_EQ(IdsSince(0), (Ids{second, first}));
  EXPECT_EQ(IdsSince(0, 1), Ids{second});
  EXPECT_EQ(coordinator_->RowsSince(0, 1).left_out, 1u);
  EXPECT_EQ(IdsSince(all.version), Ids{});

  ASSERT_TRUE(coordinator_->Cancel(first, now_).ok());
  const JobRows changed = coordinator_->RowsSince(all.version, 100);
  EXPECT_FALSE(changed.whole);
  ASSERT_EQ(changed.rows.size(), 2u);  // The second job moves up in the queue.
  EXPECT_EQ(changed.rows[1].state, v1::JOB_STATE_CANCELLED);
  const std::string third = Submit();
  EXPECT_EQ(IdsSince(changed.version), Ids{third});

  const uint64_t before = coordinator_->RowsSince(0, 100).version;
  ASSERT_TRUE(coordinator_->Forget(first, now_).ok());
  EXPECT_TRUE(coordinator_->RowsSince(before, 100).whole);
  EXPECT_EQ(IdsSince(before), (Ids{third, second}));
  EXPECT_TRUE(coordinator_->RowsSince(uint64_t{1} << 40, 100).whole);
}

// A row says how far the job is, and what it is.
TEST_F(JobRowsTest, ARowSaysWhatTheJobDoes) {
  FakeWorker worker("w", 8);
  ASSERT_TRUE(worker.Connect(*coordinator_, now_).ok());
  const std::string job = Submit({2, 2});
  Pass(absl::Seconds(1), {&worker});
  ASSERT_EQ(worker.running().size(), 2u);
  EXPECT_FALSE(coordinator_->RowsSince(0, 1).rows[0].done.has_value());
  for (const auto& [key, run] : worker.running()) worker.Progress(key, key.group == 0 ? 50 : 100, now_);
  const JobRow row = coordinator_->RowsSince(0, 1).rows[0];
  const v1::JobStatus status = Status(job);
  EXPECT_EQ(row.state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(row.what, "lenet, 2 groups x 2 ranks, elastic");
  const auto total = static_cast<double>(status.groups(0).progress().steps_total());
  ASSERT_GT(total, 0);
  ASSERT_TRUE(row.done.has_value());
  EXPECT_NEAR(*row.done, (50 / total + 100 / total) / 2, 1e-9);
  EXPECT_FALSE(row.accuracy.has_value());
}

// A view comes with the status only if the job has changed.
TEST_F(JobRowsTest, AViewOfWhatHasChanged) {
  const std::string job = Submit();
  const Coordinator::JobView first = *coordinator_->View(job, 0, now_);
  ASSERT_TRUE(first.status.has_value());
  EXPECT_EQ(first.status->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(first.row.job_id, job);
  EXPECT_FALSE(coordinator_->View(job, first.version, now_)->status.has_value());
  ASSERT_TRUE(coordinator_->Cancel(job, now_).ok());
  EXPECT_EQ(coordinator_->View(job, first.version, now_)->status->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(absl::IsNotFound(coordinator_->View("none-7", 0, now_).status()));
}

}  // namespace
}  // namespace hooke
