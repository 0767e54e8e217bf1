#include "server/cluster/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/cluster/cluster_view.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

JobRecord Record(uint64_t number, const std::string& name = "job") {
  JobRecord job;
  job.number = number;
  job.job_id = absl::StrCat(name, "-", number);
  job.submission_id = absl::StrCat("submission ", number);
  job.groups.resize(2);
  return job;
}

std::vector<std::string> Ids(const JobRows& list) {
  std::vector<std::string> ids;
  for (const JobRow& row : list.rows) ids.push_back(row.job_id);
  return ids;
}

TEST(JobTableTest, FindsAJobByIdNumberAndSubmission) {
  JobTable table;
  const known::Job& job = table.Add(Record(7));
  EXPECT_EQ(table.Find("job-7"), &job);
  EXPECT_EQ(table.FindNumber(7), &job);
  EXPECT_EQ(table.FindRecord("job-7"), &job.record);
  EXPECT_EQ(table.IdOfSubmission("submission 7"), "job-7");
  EXPECT_EQ(job.live.size(), 2);
  EXPECT_TRUE(table.CheckKnown("job-7").ok());
}

TEST(JobTableTest, SaysThatAJobIsUnknown) {
  JobTable table;
  table.Add(Record(7));
  EXPECT_EQ(table.Find("other-7"), nullptr);
  EXPECT_EQ(table.FindNumber(8), nullptr);
  EXPECT_EQ(table.FindRecord("job-8"), nullptr);
  EXPECT_EQ(table.IdOfSubmission("submission 8"), "");
  EXPECT_EQ(table.ChangesOf("job-8"), 0);
  EXPECT_EQ(table.CheckKnown("job-8").code(), absl::StatusCode::kNotFound);
}

// A number is never given twice: not that of a stored job, of a forgotten one, or of one that only a server knows.
TEST(JobTableTest, GivesEachNumberOnce) {
  JobTable table;
  table.KeepTrace({"old-3", 3, "key"});
  EXPECT_EQ(table.TakeNumber(), 4);
  table.Add(Record(7));
  EXPECT_EQ(table.TakeNumber(), 8);
  table.ReserveNumbers(20);
  table.ReserveNumbers(5);
  EXPECT_EQ(table.TakeNumber(), 21);
}

// The trace names the job by its id, too: a server may know another job of this number from another cluster.
TEST(JobTableTest, KeepsTheTraceOfAForgottenJob) {
  JobTable table;
  table.Add(Record(7));
  const ForgottenJob trace = table.Forget(7);
  EXPECT_EQ(trace.job_id, "job-7");
  EXPECT_EQ(trace.job_key, "submission 7");
  EXPECT_EQ(table.Find("job-7"), nullptr);
  EXPECT_EQ(table.IdOfSubmission("submission 7"), "");
  ASSERT_NE(table.FindForgotten("job-7"), nullptr);
  EXPECT_EQ(table.FindForgotten("job-7")->number, 7);
  EXPECT_EQ(table.FindForgotten("other-7"), nullptr);
  EXPECT_EQ(table.size(), 0);
}

TEST(JobTableTest, KeepsABoundedNumberOfTraces) {
  JobTable table;
  for (uint64_t number = 1; number <= ForgottenJob::kKeptMax + 1; ++number) {
    table.KeepTrace({absl::StrCat("job-", number), number, "key"});
  }
  EXPECT_EQ(table.FindForgotten("job-1"), nullptr);
  EXPECT_NE(table.FindForgotten("job-2"), nullptr);
}

// A reader that comes again gets only what has changed since.
TEST(JobTableTest, TellsWhatHasChanged) {
  JobTable table;
  for (uint64_t number = 1; number <= 3; ++number) table.Add(Record(number));
  const JobRows all = RowsSince(table, 0, 10);
  EXPECT_TRUE(all.whole);
  EXPECT_THAT(Ids(all), ElementsAre("job-3", "job-2", "job-1"));
  EXPECT_THAT(Ids(RowsSince(table, all.version, 10)), IsEmpty());
  const uint64_t before = table.ChangesOf("job-2");
  table.NoteChange(*table.Find("job-2"));
  EXPECT_GT(table.ChangesOf("job-2"), before);
  const JobRows changed = RowsSince(table, all.version, 10);
  EXPECT_FALSE(changed.whole);
  EXPECT_THAT(Ids(changed), ElementsAre("job-2"));
  // The list says which jobs are there only if it is whole.
  table.Forget(1);
  const JobRows after = RowsSince(table, changed.version, 1);
  EXPECT_TRUE(after.whole);
  EXPECT_THAT(Ids(after), ElementsAre("job-3"));
  EXPECT_EQ(after.left_out, 1);
}

}  // namespace
}  // namespace hooke
