#include "client/text/job_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_servers.h"
#include "client/text/listing.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Details(const v1::JobStatus& job) {
  return JobDetails(job, absl::FromUnixMillis(job.now_unix_ms()), absl::UTCTimeZone());
}

// The text about a running job has its state, its times, its groups with place, start and step, the ranks that do not
// answer, and its notices. All times have one format.
TEST(JobDetailsTest, RunningJob) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.add_servers("127.0.0.1:7411");
  job.add_servers("127.0.0.1:7412");
  job.mutable_groups(1)->set_incarnation(3);
  v1::Notice* notice = job.add_notices();
  notice->set_unix_ms(job.now_unix_ms() - 10000);
  notice->set_text("worker w1 has not answered since 2001-09-09T01:47:00Z\x1b[2J");
  EXPECT_EQ(Details(job),
            "job         fashion-1\n"
            "state       running for 0:42\n"
            "what        lenet, 2 groups x 2 ranks, elastic every 16 steps\n"
            "done        46 %, ETA 0:42\n"
            "submitted   01:46:40 (0:43 ago)\n"
            "started     01:46:41 (0:42 ago)\n"
            "first step  01:46:42 (0:41 ago)\n"
            "center      not evaluated yet\n"
            "servers     127.0.0.1:7411\n"
            "            127.0.0.1:7412\n"
            "\n"
            "GROUP    STATE    WORKER (SITE)     START  STEP      EPOCH  LOSS    SAMPLES/S  TIME SPENT IN"
            "                                REASON\n"
            "group 0  running  worker-1 (local)  1      528/1123  1.88   0.3512  1843"
            "       compute 82 %, collective 15 %, exchange 3 %\n"
            "group 1  running  worker-2 (local)  3      512/1123  1.88   0.3512  1843"
            "       compute 82 %, collective 15 %, exchange 3 %\n"
            "\n"
            "01:47:13  worker w1 has not answered since 01:47:00 [2J\n");
}

// A held group shows its last lines, without control characters, and what to do. The table of jobs names it although
// the job runs.
TEST(JobDetailsTest, HeldGroup) {
  v1::JobStatus job = RunningJob("fashion-1");
  v1::GroupStatus& group = *job.mutable_groups(1);
  group.set_state(v1::GROUP_STATE_HELD);
  group.set_reason("held: it ended 3 times in a row in the same way at step 0: exit status 3");
  group.add_last_lines("group 1 rank 0: cannot open /d");
  group.add_last_lines("group 1 rank 0: \x1b[1mgiving up");
  EXPECT_THAT(Details(job), HasSubstr("! group 1 is held; `hooke resume fashion-1` starts it again. Its last lines:\n"
                                      "    group 1 rank 0: cannot open /d\n"
                                      "    group 1 rank 0: "));
  EXPECT_THAT(Details(job), Not(HasSubstr("\x1b[1m")));
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = job;
  EXPECT_THAT(JobsTable(jobs, absl::FromUnixMillis(job.now_unix_ms()), absl::UTCTimeZone()),
              HasSubstr("group 1 is held: it ended 3 times in a row"));
}

// Each group that has metrics of its own has a line with them.
TEST(JobDetailsTest, Metrics) {
  v1::JobStatus job = RunningJob("fashion-1");
  v1::Metric* metric = job.mutable_groups(1)->mutable_progress()->add_metrics();
  metric->set_name("perplexity");
  metric->set_value(21.5);
  EXPECT_THAT(Details(job), ::testing::HasSubstr("exchange 3 %\n\ngroup 1: perplexity 21.5\n"));
}

// A job that sends files says how many, and how large they are.
TEST(JobDetailsTest, FilesOfAJob) {
  v1::JobStatus job = RunningJob("own-1");
  EXPECT_THAT(Details(job), Not(HasSubstr("files")));
  job.mutable_spec()->mutable_command()->add_arguments("train.py");
  job.mutable_spec()->mutable_command()->mutable_files()->set_files(3);
  job.mutable_spec()->mutable_command()->mutable_files()->set_bytes(2048);
  EXPECT_THAT(Details(job), HasSubstr("files       3 files, 2.0 KiB\n"));
}

// The text names the server that groups miss. If no notice tells the last setback (the return of a part of the center
// to a snapshot), the text has a line about it.
TEST(JobDetailsTest, ServerThatWasAway) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.add_servers("a:1");
  job.add_servers("b:2");
  v1::AbsentServer* server = job.mutable_groups(0)->mutable_progress()->add_absent_servers();
  server->set_address("b:2");
  server->set_since_unix_ms(job.now_unix_ms() - 6000);
  job.mutable_setback()->set_unix_ms(job.now_unix_ms() - 60000);
  job.mutable_setback()->set_text("server b:2 came back from its snapshot");
  EXPECT_THAT(Details(job), HasSubstr("\n! exchanging with 1 of 2 servers since 01:47:17 (without b:2)\n"
                                      "! 01:46:23  server b:2 came back from its snapshot\n"));
  *job.add_notices() = job.setback();
  EXPECT_THAT(Details(job), Not(HasSubstr("! 01:46:23")));
  EXPECT_THAT(Details(job), HasSubstr("\n01:46:23  server b:2 came back from its snapshot\n"));
}

// The text about an ended job has its reason, its times, and the center's accuracy. Times of another day have their
// date.
TEST(JobDetailsTest, EndedJob) {
  v1::JobStatus job = SucceededJob("fashion-1");
  EXPECT_THAT(Details(job), HasSubstr("\nstate       succeeded after 1:32\n"));
  EXPECT_THAT(Details(job), HasSubstr("\ndone        100 %\n"));
  EXPECT_THAT(Details(job), HasSubstr("\nended       01:48:13 (0:00 ago)\n"));
  EXPECT_THAT(Details(job), HasSubstr("\ncenter      test accuracy 90.12 % at epoch 4.00, loss 0.2861\n"));
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_reason("group 0 failed at step 5: no such file");
  job.set_now_unix_ms(job.now_unix_ms() + int64_t{24} * 3600 * 1000);
  EXPECT_THAT(Details(job), HasSubstr("\nstate       failed after 1:32: group 0 failed at step 5: no such file\n"));
  EXPECT_THAT(Details(job), HasSubstr("\nended       2001-09-09 01:48:13 (24:00:00 ago)\n"));
}

// Unknown values are a dash, not a zero. They occur for a waiting group, and after a restart of the coordinator.
TEST(JobDetailsTest, NotKnown) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_groups(0)->clear_progress();
  v1::GroupStatus& waiting = *job.mutable_groups(1);
  waiting.Clear();
  waiting.set_group(1);
  waiting.set_state(v1::GROUP_STATE_WAITING);
  waiting.set_reason("no site has 2 free slots");
  job.set_first_step_unix_ms(0);
  EXPECT_THAT(Details(job), HasSubstr("\ndone        -\n"));
  EXPECT_THAT(Details(job), HasSubstr("\nfirst step  -\n"));
  EXPECT_THAT(Details(job), HasSubstr("\nservers     -\n"));
  EXPECT_THAT(Details(job), HasSubstr("\ngroup 0  running  worker-1 (local)  1      -     -      -     -"));
  EXPECT_THAT(Details(job), HasSubstr("\ngroup 1  waiting  -                 -      -     -      -     -"));
  EXPECT_THAT(Details(job), HasSubstr(" no site has 2 free slots\n"));
  EXPECT_THAT(Details(job), Not(HasSubstr("0/")));
}

}  // namespace
}  // namespace hooke
