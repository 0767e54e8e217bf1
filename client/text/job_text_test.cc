#include "client/text/job_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "job/state_word.h"

namespace hooke {
namespace {

v1::JobStatus TwoGroups() {
  v1::JobStatus job;
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_spec()->mutable_groups()->set_count(2);
  job.mutable_spec()->mutable_groups()->set_ranks(2);
  job.mutable_spec()->mutable_train()->set_batch_size(50);
  for (const double rate : {1000.0, 2000.0}) {
    v1::GroupStatus* group = job.add_groups();
    group->set_state(v1::GROUP_STATE_RUNNING);
    group->mutable_progress()->set_steps_total(1000);
    group->mutable_progress()->set_step(500);
    group->mutable_progress()->set_samples_per_s(rate);
  }
  return job;
}

// A server that several groups miss is reported once, with the time when the first group began to miss it.
TEST(JobTextTest, AServerThatIsAwayIsToldSinceWhen) {
  v1::JobStatus job = TwoGroups();
  job.add_servers("a:1");
  job.add_servers("b:2");
  EXPECT_EQ(AbsentText(job, absl::UTCTimeZone()), "");
  for (const int group : {0, 1}) {
    v1::AbsentServer* server = job.mutable_groups(group)->mutable_progress()->add_absent_servers();
    server->set_address("b:2");
    server->set_since_unix_ms(int64_t{1000} * (14 * 3600 + 3 * 60 + 9 - group));
  }
  EXPECT_EQ(AbsentText(job, absl::UTCTimeZone()), "exchanging with 1 of 2 servers since 14:03:08 (without b:2)");
  for (v1::GroupStatus& group : *job.mutable_groups()) group.set_state(v1::GROUP_STATE_STARTING);
  EXPECT_EQ(AbsentText(job, absl::UTCTimeZone()), "") << "of ranks that have ended";
}

// If groups miss different servers, there is a text for each group: "0 of 2 servers" for all would be wrong.
TEST(JobTextTest, GroupsThatMissDifferentServersAreToldApart) {
  v1::JobStatus job = TwoGroups();
  job.add_servers("a:1");
  job.add_servers("b:2");
  for (const int group : {0, 1}) {
    job.mutable_groups(group)->set_group(static_cast<uint32_t>(group));
    v1::AbsentServer* server = job.mutable_groups(group)->mutable_progress()->add_absent_servers();
    server->set_address(group == 0 ? "a:1\n" : "b:2");
    server->set_since_unix_ms(int64_t{1000} * (14 * 3600 + 3 * 60 + 9 - group));
  }
  EXPECT_EQ(
      AbsentText(job, absl::UTCTimeZone()),
      "group 0 exchanging with 1 of 2 servers since 14:03:09 (without a:1 ); group 1 exchanging with 1 of 2 servers "
      "since 14:03:08 (without b:2)");
}

// The time left is that of the slowest group. While a group does not move, the time left is not known.
TEST(JobTextTest, TimeLeftIsThatOfTheSlowestGroup) {
  v1::JobStatus job = TwoGroups();
  EXPECT_EQ(TimeLeft(job), absl::Seconds(50));
  job.mutable_groups(0)->set_state(v1::GROUP_STATE_FINISHED);
  EXPECT_EQ(TimeLeft(job), absl::Seconds(25));
  job.mutable_groups(1)->add_silences();
  EXPECT_EQ(TimeLeft(job), std::nullopt);
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1e-30}) {
    job = TwoGroups();
    job.mutable_groups(1)->mutable_progress()->set_samples_per_s(rate);
    EXPECT_EQ(TimeLeft(job), std::nullopt) << rate;
  }
  job = TwoGroups();
  job.mutable_groups(1)->set_state(v1::GROUP_STATE_STARTING);
  EXPECT_EQ(TimeLeft(job), std::nullopt);
  job = TwoGroups();
  // A wrong number from a peer.
  job.mutable_groups(1)->mutable_progress()->set_step(5000);
  EXPECT_EQ(TimeLeft(job), std::nullopt);
  job = TwoGroups();
  job.mutable_spec()->mutable_command()->add_arguments("train");
  EXPECT_EQ(TimeLeft(job), std::nullopt);
}

// A server that both groups miss is listed once. Silent ranks of two groups are listed as two.
TEST(JobTextTest, ASilenceIsToldOnce) {
  v1::JobStatus job = TwoGroups();
  for (int i = 0; i < 2; ++i) {
    job.mutable_groups(i)->set_group(static_cast<uint32_t>(i));
    v1::Silence* server = job.mutable_groups(i)->add_silences();
    server->set_what("server 127.0.0.1:4001");
    server->set_since_unix_ms(int64_t{12} * 3600 * 1000);
    server->set_step(120);
    v1::Silence* rank = job.mutable_groups(i)->add_silences();
    rank->set_what("rank 1 (pid 4711)");
    rank->set_since_unix_ms(int64_t{12} * 3600 * 1000);
    rank->set_step(120);
  }
  const std::vector<JobSilence> silences = Silences(job, absl::FromUnixSeconds(12 * 3600 + 6), absl::UTCTimeZone());
  ASSERT_EQ(silences.size(), 3u);
  EXPECT_EQ(silences[0].text, "server 127.0.0.1:4001 has not answered since 12:00:00 (6 s), at step 120");
  EXPECT_EQ(silences[1].text, "rank 1 (pid 4711) of group 0 has not answered since 12:00:00 (6 s), at step 120");
  EXPECT_EQ(silences[2].text, "rank 1 (pid 4711) of group 1 has not answered since 12:00:00 (6 s), at step 120");
}

// A group on several workers is shown with the ranks of each.
TEST(JobTextTest, PlaceOfAGroup) {
  v1::GroupStatus placed;
  EXPECT_EQ(PlaceText(placed), "");
  placed.set_worker("w1");
  placed.set_site("hpc");
  EXPECT_EQ(PlaceText(placed), "w1 (hpc)");
  for (const uint32_t ranks : {2, 1}) {
    v1::GroupPart* part = placed.add_parts();
    part->set_worker(ranks == 2 ? "w1" : "w2");
    part->set_first_rank(ranks == 2 ? 0 : 2);
    part->set_ranks(ranks);
  }
  EXPECT_EQ(PlaceText(placed), "w1 (ranks 0-1) and w2 (rank 2) (hpc)");
}

// Durations and states have their usual form. Unknown enum numbers become words, too.
TEST(JobTextTest, WordsAndNumbers) {
  EXPECT_EQ(DurationText(absl::Seconds(42)), "0:42");
  EXPECT_EQ(DurationText(absl::Seconds(3723)), "1:02:03");
  EXPECT_EQ(DurationText(absl::Seconds(-5)), "0:00");
  EXPECT_EQ(PercentText(0.90123), "90.12 %");
  EXPECT_EQ(GroupStateText(static_cast<v1::GroupState>(99)), "unknown");
}

// A user's program may have measured an accuracy, a loss, or numbers under names of its own.
TEST(JobTextTest, CenterHasWhatWasMeasured) {
  v1::CenterEvaluated center;
  center.set_epoch(1);
  center.set_accuracy(0.8812);
  center.set_loss(0.3333);
  EXPECT_EQ(CenterText(center), "test accuracy 88.12 % at epoch 1.00, loss 0.3333");
  center.set_accuracy(std::numeric_limits<double>::quiet_NaN());
  center.set_loss(std::numeric_limits<double>::quiet_NaN());
  v1::Metric* metric = center.add_metrics();
  metric->set_name("perplexity");
  metric->set_value(21.5);
  EXPECT_EQ(CenterText(center), "at epoch 1.00, perplexity 21.5");
}

}  // namespace
}  // namespace hooke
