#include "client/watch/watch_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/fake_servers.h"
#include "client/text/terminal_text.h"

namespace hooke {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

WatchViewOptions View(int width, int height) { return {width, height, absl::UTCTimeZone()}; }

absl::Time NowOf(const v1::JobStatus& job) { return absl::FromUnixMillis(job.now_unix_ms()); }

v1::JobStatus JobWithEverything() {
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_center()->set_accuracy(0.8812);
  job.mutable_center()->set_epoch(1);
  job.mutable_center()->set_loss(0.3333);
  v1::Silence* silence = job.mutable_groups(0)->add_silences();
  silence->set_what("rank 1 (pid 4711)");
  silence->set_since_unix_ms(job.now_unix_ms() - 6000);
  silence->set_step(528);
  job.mutable_groups(1)->set_incarnation(2);
  v1::Notice* notice = job.add_notices();
  notice->set_unix_ms(job.now_unix_ms() - 10000);
  notice->set_text("group 1 starts again: rank 0 was killed by signal 9\x1b[2J");
  return job;
}

// The job has two groups, a silent rank, a restart and an evaluation. The picture shows all of these.
TEST(RenderWatchTest, ShowsGroupsCenterSilencesAndNotices) {
  const v1::JobStatus job = JobWithEverything();
  EXPECT_THAT(
      RenderWatch(job, NowOf(job), View(100, 24)),
      ElementsAre("fashion-1  running for 0:42  lenet, 2 groups x 2 ranks, elastic every 16 steps",
                  "group 0   [###############>                    ]  47 %   528/1123  loss 0.3512  1843 samples/s",
                  "          running on worker-1 (local): compute 82 %, collective 15 %, exchange 3 %",
                  "group 1   [###############>                    ]  45 %   512/1123  loss 0.3512  1843 samples/s",
                  "          running on worker-2 (local), start 2: compute 82 %, collective 15 %, exchange 3 %",
                  "center    test accuracy 88.12 % at epoch 1.00, loss 0.3333",
                  "! rank 1 (pid 4711) of group 0 has not answered since 01:47:17 (6 s), at step 528",
                  "01:47:13  group 1 starts again: rank 0 was killed by signal 9 [2J"));
}

// A program's own metrics stand before where its time goes, and in the lines of a log.
TEST(RenderWatchTest, ShowsMetrics) {
  v1::JobStatus job = RunningJob("fashion-1");
  for (const std::string name : {"perplexity", "rate\x1b[2J"}) {
    v1::Metric* metric = job.mutable_groups(1)->mutable_progress()->add_metrics();
    metric->set_name(name);
    metric->set_value(21.5);
  }
  const std::string metrics = "perplexity 21.5, rate\\x1b[2J 21.5, ";
  const std::vector<std::string> lines = RenderWatch(job, NowOf(job), View(200, 24));
  EXPECT_THAT(lines, Contains(HasSubstr("running on worker-1 (local): compute 82 %")));
  EXPECT_THAT(lines, Contains(HasSubstr(absl::StrCat("running on worker-2 (local): ", metrics, "compute 82 %"))));
  WatchLog log({absl::Seconds(5), absl::UTCTimeZone()});
  EXPECT_THAT(log.Lines(job, NowOf(job)),
              Contains(HasSubstr(absl::StrCat("loss 0.3512, ", metrics, "1843 samples/s, compute 82 %"))));
}

// The picture names the servers that exchanges miss. It also has a setback that newer notices have pushed out.
TEST(RenderWatchTest, ShowsWhichServersAreMissedAndTheLastSetback) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.add_servers("a:1");
  job.add_servers("b:2");
  v1::AbsentServer* server = job.mutable_groups(0)->mutable_progress()->add_absent_servers();
  server->set_address("b:2");
  server->set_since_unix_ms(job.now_unix_ms() - 6000);
  job.mutable_setback()->set_unix_ms(job.now_unix_ms() - 60000);
  job.mutable_setback()->set_text("server b:2 came back from its snapshot");
  *job.add_notices() = job.setback();
  EXPECT_THAT(RenderWatch(job, NowOf(job), View(100, 24)),
              AllOf(Contains("! exchanging with 1 of 2 servers since 01:47:17 (without b:2)"),
                    Contains("01:46:23  server b:2 came back from its snapshot"), SizeIs(7)));
  for (int i = 0; i < 4; ++i) {
    job.add_notices()->set_unix_ms(job.now_unix_ms() - 1000 + i);
    job.mutable_notices(i + 1)->set_text("newer");
  }
  EXPECT_THAT(RenderWatch(job, NowOf(job), View(100, 24)),
              Contains("! 01:46:23  server b:2 came back from its snapshot"));
}

// The first line has the time left.
TEST(RenderWatchTest, ShowsTheTimeLeft) {
  const v1::JobStatus job = RunningJob("fashion-1");
  EXPECT_EQ(RenderWatch(job, NowOf(job), View(100, 24))[0],
            "fashion-1  running for 0:42, ETA 0:42  lenet, 2 groups x 2 ranks, elastic every 16 steps");
}

// For a queued job the picture has what the job waits for. The step of its group is unknown.
TEST(RenderWatchTest, ShowsWhatAJobWaitsFor) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.set_state(v1::JOB_STATE_QUEUED);
  job.set_reason("no site has 2 free slots");
  job.set_started_unix_ms(0);
  job.mutable_groups()->DeleteSubrange(1, 1);
  v1::GroupStatus& group = *job.mutable_groups(0);
  group.Clear();
  group.set_state(v1::GROUP_STATE_WAITING);
  group.set_reason("no site has 2 free slots");
  group.mutable_progress()->set_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(
      RenderWatch(job, NowOf(job), View(100, 24)),
      ElementsAre(
          "fashion-1  queued for 0:43: no site has 2 free slots  lenet, 2 groups x 2 ranks, elastic every 16 s…",
          "group 0   [                                    ]   0 %  0/?  loss      -  0 samples/s",
          "          waiting: no site has 2 free slots"));
}

// The final evaluation is shown without steps. A reason that only repeats the state is left out.
TEST(RenderWatchTest, ShowsTheEvaluation) {
  v1::JobStatus job = SucceededJob("fashion-1");
  job.set_state(v1::JOB_STATE_EVALUATING);
  job.set_ended_unix_ms(0);
  v1::GroupStatus* evaluation = job.add_groups();
  evaluation->set_group(2);
  evaluation->set_task(v1::GroupStart::EVALUATE);
  evaluation->set_state(v1::GROUP_STATE_RUNNING);
  evaluation->set_reason("running");
  evaluation->set_worker("worker-1");
  evaluation->set_site("local");
  EXPECT_THAT(RenderWatch(job, NowOf(job), View(100, 24)), testing::Contains("evaluate  running on worker-1 (local)"));
}

// A long phase is shown before the rank counts as silent.
TEST(RenderWatchTest, ShowsAPhaseThatLasts) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_groups(0)->mutable_progress()->set_phase(v1::RankProgress::EXCHANGE);
  job.mutable_groups(0)->mutable_progress()->set_phase_seconds(4.2);
  EXPECT_EQ(RenderWatch(job, NowOf(job), View(120, 24))[2],
            "          running on worker-1 (local): compute 82 %, collective 15 %, exchange 3 %; exchange for 4 s");
}

// With any number of groups the picture fits the terminal, but may have three lines on a smaller one.
TEST(RenderWatchTest, FitsEveryTerminal) {
  v1::JobStatus job = JobWithEverything();
  for (int i = 2; i < 100; ++i) *job.add_groups() = job.groups(0);
  job.mutable_groups(0)->set_worker("w\u00f6rker-\u8bad\u7ec3");
  for (const int width : {1, 5, 20, 21, 40, 61, 80, 300}) {
    for (const int height : {1, 2, 5, 24, 60, 500}) {
      const std::vector<std::string> lines = RenderWatch(job, NowOf(job), View(width, height));
      EXPECT_LE(lines.size(), static_cast<size_t>(std::max(3, height - 1))) << width << "x" << height;
      for (const std::string& line : lines) EXPECT_LE(DisplayWidth(line), width) << line;
    }
  }
  EXPECT_THAT(RenderWatch(job, NowOf(job), View(80, 24)), testing::Contains("          and 82 more"));
}

// On a narrow terminal a line is cut and ends in an ellipsis.
TEST(RenderWatchTest, CutLinesEndInAnEllipsis) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_groups(0)->set_worker("\u8bad\u7ec3\u7ec4");
  EXPECT_THAT(RenderWatch(job, NowOf(job), View(20, 24)),
              ElementsAre("fashion-1  running …", "group 0    47 %   5…", "          running o…",
                          "group 1    45 %   5…", "          running o…"));
  EXPECT_EQ(RenderWatch(job, NowOf(job), View(25, 24))[2], "          running on \u8bad…");
  EXPECT_EQ(RenderWatch(job, NowOf(job), View(26, 24))[2], "          running on \u8bad\u7ec3…");
}

// After a restart of the coordinator a group's step may be unknown. It is then shown as "-", not as 0.
TEST(RenderWatchTest, AStepThatIsNotKnown) {
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_groups(0)->clear_progress();
  EXPECT_EQ(RenderWatch(job, NowOf(job), View(100, 24))[1],
            "group 0   [                                    ]   - %  -/?  loss      -  - samples/s");
}

// Times inside daemons' texts have the format of all other times. A time of another day is shown with its date.
TEST(RenderWatchTest, OneFormatOfTime) {
  v1::JobStatus job = RunningJob("fashion-1");
  v1::Notice* notice = job.add_notices();
  notice->set_unix_ms(job.now_unix_ms());
  notice->set_text("worker w1 has not answered since 2001-09-09T01:47:13Z");
  notice = job.add_notices();
  notice->set_unix_ms(job.now_unix_ms() - int64_t{24} * 3600 * 1000);
  notice->set_text("server a:1 is back");
  const std::vector<std::string> lines = RenderWatch(job, NowOf(job), View(100, 24));
  EXPECT_THAT(lines, testing::Contains("01:47:23  worker w1 has not answered since 01:47:13"));
  EXPECT_THAT(lines, testing::Contains("2001-09-08 01:47:23  server a:1 is back"));
}

// While the coordinator is away, the last picture is shown below a line with the time since when. Together they still
// fit the screen.
TEST(RenderAwayTest, SaysSinceWhenAboveWhatWasKnown) {
  const v1::JobStatus job = JobWithEverything();
  const absl::Time since = NowOf(job) + absl::Seconds(1);
  const std::vector<std::string> lines = RenderAway(job, since, since + absl::Seconds(30), View(100, 24));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "coordinator away since 01:47:24; showing what was known then");
  EXPECT_EQ(std::vector<std::string>(lines.begin() + 1, lines.end()), RenderWatch(job, NowOf(job), View(100, 24)));
  for (const int width : {1, 20, 80}) {
    for (const int height : {1, 2, 3, 4, 5, 24}) {
      const std::vector<std::string> small = RenderAway(job, since, since, View(width, height));
      EXPECT_LE(small.size(), static_cast<size_t>(std::max(1, height - 1))) << height;
      for (const std::string& line : small) EXPECT_LE(DisplayWidth(line), width);
    }
  }
}

// Plain lines report each change once, and a group's progress at most every five seconds.
TEST(WatchLogTest, TellsEachThingOnce) {
  WatchLog log({absl::Seconds(5), absl::UTCTimeZone()});
  v1::JobStatus job = RunningJob("fashion-1");
  job.mutable_groups()->DeleteSubrange(1, 1);
  absl::Time now = NowOf(job);
  EXPECT_THAT(
      log.Lines(job, now),
      ElementsAre("01:47:23  fashion-1: running (lenet, 2 groups x 2 ranks, elastic every 16 steps)",
                  "01:47:23  group 0: running on worker-1 (local)",
                  "01:47:23  group 0: step 528/1123 (47 %), epoch 1.88, loss 0.3512, 1843 samples/s, compute 82 %, "
                  "collective 15 %, exchange 3 %"));
  EXPECT_THAT(log.Lines(job, now + absl::Seconds(60)), IsEmpty());
  job.mutable_groups(0)->mutable_progress()->set_step(530);
  EXPECT_THAT(log.Lines(job, now + absl::Seconds(4)), IsEmpty());
  EXPECT_THAT(log.Lines(job, now + absl::Seconds(5)), ElementsAre(HasSubstr("group 0: step 530/1123")));
  job.mutable_groups(0)->mutable_progress()->set_step(1123);
  EXPECT_THAT(log.Lines(job, now + absl::Seconds(6)), ElementsAre(HasSubstr("group 0: step 1123/1123 (100 %)")));
}

// There are lines for notices, for peers that stop answering and answer again, for evaluations, and for the end of the
// job.
TEST(WatchLogTest, TellsNoticesSilencesEvaluationsAndTheEnd) {
  WatchLog log({absl::Seconds(5), absl::UTCTimeZone()});
  v1::JobStatus job = RunningJob("fashion-1");
  const absl::Time now = NowOf(job);
  log.Lines(job, now);
  v1::Notice* notice = job.add_notices();
  notice->set_unix_ms(job.now_unix_ms() - 1000);
  notice->set_text("server 127.0.0.1:4001 is back");
  v1::Silence* silence = job.mutable_groups(1)->add_silences();
  silence->set_what("rank 1 (pid 4711)");
  silence->set_since_unix_ms(job.now_unix_ms() - 6000);
  silence->set_step(120);
  EXPECT_THAT(log.Lines(job, now),
              ElementsAre("01:47:22  server 127.0.0.1:4001 is back",
                          "01:47:23  rank 1 (pid 4711) of group 1 has not answered since 01:47:17 (6 s), at step 120"));
  EXPECT_THAT(log.Lines(job, now + absl::Seconds(1)), IsEmpty());
  job.mutable_groups(1)->clear_silences();
  EXPECT_THAT(log.Lines(job, now), ElementsAre("01:47:23  rank 1 (pid 4711) of group 1 is no longer silent"));
  v1::JobStatus ended = SucceededJob("fashion-1");
  ended.clear_notices();
  // A notice of the coordinator has already given the center's accuracy, so the line does not repeat it.
  EXPECT_THAT(log.Lines(ended, NowOf(ended)), testing::Contains("01:48:13  fashion-1: succeeded after 1:32"));
}

// If a notice of the coordinator reports that a peer stopped answering, no other line does. That the peer answers again
// is also reported only once. Both hold even if newer notices have pushed that notice out.
TEST(WatchLogTest, TellsASilenceOnce) {
  for (const std::string what : {"server 127.0.0.1:4001", "worker w1", "rank 1 (pid 4711)"}) {
    WatchLog log({absl::Seconds(5), absl::UTCTimeZone()});
    v1::JobStatus job = RunningJob("fashion-1");
    const absl::Time now = NowOf(job);
    log.Lines(job, now);
    v1::Silence* silence = job.mutable_groups(1)->add_silences();
    silence->set_what(what);
    silence->set_since_unix_ms(job.now_unix_ms() - 4000);
    silence->set_step(512);
    v1::Notice* notice = job.add_notices();
    notice->set_unix_ms(job.now_unix_ms());
    notice->set_text(absl::StrCat(what, " has not answered since 01:47:19, at step 512"));
    EXPECT_THAT(log.Lines(job, now),
                ElementsAre(absl::StrCat("01:47:23  ", what, " has not answered since 01:47:19, at step 512")));
    notice->set_text("something else");
    EXPECT_THAT(log.Lines(job, now), ElementsAre("01:47:23  something else"));
    job.mutable_groups(1)->clear_silences();
    notice->set_text(absl::StrCat(what, " answers again"));
    EXPECT_THAT(log.Lines(job, now), ElementsAre(absl::StrCat("01:47:23  ", what, " answers again")));
  }
}

}  // namespace
}  // namespace hooke
