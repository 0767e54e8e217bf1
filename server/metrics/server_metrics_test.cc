#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/metrics/cluster_metrics.h"
#include "server/metrics/shard_metrics.h"

namespace hooke {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns the lines of samples, without those of help and type.
std::vector<std::string> Samples(const std::string& text) {
  std::vector<std::string> samples;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] != '#') samples.emplace_back(line);
  }
  return samples;
}

// True if no two samples have the same name and labels.
bool AreDifferent(const std::vector<std::string>& samples) {
  std::set<std::string> names;
  for (const std::string& sample : samples) {
    if (!names.insert(sample.substr(0, sample.rfind(' '))).second) return false;
  }
  return true;
}

JobFigures TrainingJob(const std::string& id) {
  JobFigures job;
  job.job_id = id;
  job.state = v1::JOB_STATE_RUNNING;
  job.step = 40;
  job.restarts = 1;
  for (uint32_t i = 0; i < 3; ++i) {
    GroupFigures& group = job.groups.emplace_back();
    group.group = i;
    group.placed = i < 2;
    group.starts = 1;
    v1::RankProgress& progress = group.progress.emplace();
    progress.set_step(40 - 10 * i);
    progress.set_steps_total(100);
    progress.set_loss(i == 1 ? std::numeric_limits<double>::quiet_NaN() : 0.25);
    progress.set_compute_seconds(2);
    progress.set_exchanges(10);
    if (i == 0) progress.set_center_distance(0.25);
    if (i == 0) progress.set_staleness(1.5);
  }
  return job;
}

std::string ClusterText(const CoordinatorFigures& figures) {
  MetricFamilies families;
  AddClusterMetrics(figures, families);
  return families.Text();
}

// A job with three groups: steps, a loss that is not a number, and how far the running groups are behind.
TEST(ServerMetricsTest, ShowsAJobAndItsGroups) {
  CoordinatorFigures figures;
  figures.cluster.jobs = {{v1::JOB_STATE_QUEUED, 0}, {v1::JOB_STATE_RUNNING, 1}};
  figures.cluster.groups = {{v1::GROUP_STATE_RUNNING, 2}};
  figures.cluster.listed_jobs = {TrainingJob("a-1")};
  figures.cluster.listed_jobs[0].center.emplace().set_accuracy(0.875);
  const std::string text = ClusterText(figures);
  for (const char* sample :
       {"hooke_jobs{state=\"running\"} 1", "hooke_jobs{state=\"queued\"} 0", "hooke_groups{state=\"running\"} 2",
        "hooke_job_state{job=\"a-1\",state=\"running\"} 1", "hooke_job_step{job=\"a-1\"} 40",
        "hooke_job_restarts_total{job=\"a-1\"} 1", "hooke_job_center_accuracy_ratio{job=\"a-1\"} 0.875",
        "hooke_group_step{job=\"a-1\",group=\"1\"} 30", "hooke_group_loss{job=\"a-1\",group=\"0\"} 0.25",
        "hooke_group_loss{job=\"a-1\",group=\"1\"} Nan", "hooke_group_steps_behind{job=\"a-1\",group=\"1\"} 10",
        "hooke_group_activity_seconds_total{job=\"a-1\",group=\"0\",activity=\"compute\"} 2",
        "hooke_group_center_distance_ratio{job=\"a-1\",group=\"0\"} 0.25",
        "hooke_group_staleness_changes{job=\"a-1\",group=\"0\"} 1.5",
        "hooke_group_exchanges_total{job=\"a-1\",group=\"2\"} 10", "hooke_coordinator_store_works 1"}) {
    EXPECT_THAT(text, HasSubstr(std::string(sample) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("hooke_group_center_distance_ratio{job=\"a-1\",group=\"1\"}")));
  // A group that waits for its next start is behind nobody.
  EXPECT_THAT(text, Not(HasSubstr("hooke_group_steps_behind{job=\"a-1\",group=\"2\"}")));
  EXPECT_TRUE(AreDifferent(Samples(text)));
}

// A job without a report and an evaluation that has no accuracy: no sample pretends to know.
TEST(ServerMetricsTest, LeavesOutWhatIsNotKnown) {
  CoordinatorFigures figures;
  JobFigures& job = figures.cluster.listed_jobs.emplace_back();
  job.job_id = "a-1";
  job.groups.emplace_back();
  job.center.emplace().set_accuracy(std::numeric_limits<double>::quiet_NaN());
  const std::string text = ClusterText(figures);
  EXPECT_THAT(text, Not(HasSubstr("accuracy")));
  EXPECT_THAT(text, Not(HasSubstr("hooke_group_loss")));
  EXPECT_THAT(text, Not(HasSubstr("hooke_group_step")));
  EXPECT_THAT(text, HasSubstr("hooke_group_placed{job=\"a-1\",group=\"0\"} 0\n"));
}

// Two servers that claim one address have samples of their own. Names with quotes stay one label.
TEST(ServerMetricsTest, KeepsNodesApart) {
  CoordinatorFigures figures;
  for (const char* id : {"11", "22"}) {
    ServerFigures& server = figures.cluster.servers.emplace_back();
    server.address = "b:1";
    server.id = id;
  }
  figures.cluster.workers = {{"a\"b\\", "s", 4, 2, true, absl::Seconds(1.5)}};
  const std::string text = ClusterText(figures);
  EXPECT_TRUE(AreDifferent(Samples(text)));
  EXPECT_THAT(text, HasSubstr("hooke_worker_unheard_seconds{worker=\"a\\\"b\\\\\",site=\"s\"} 1.5\n"));
}

// A shard's counts become counters and a cumulative histogram. Shards and groups beyond the limits are left out.
TEST(ServerMetricsTest, ShowsShards) {
  ShardFigures shard;
  shard.job_id = "a-1";
  shard.exchanges.answers = {3, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  shard.exchanges.answer_time = absl::Seconds(12);
  shard.exchanges.staleness = {4, 1, 0, 0, 0, 0, 0, 0, 0, 0};
  shard.exchanges.staleness_updates = 1;
  shard.exchanges.idle = {absl::Seconds(1), std::nullopt, absl::Seconds(2)};
  shard.snapshot_age = absl::Seconds(7);
  ShardFigures other = shard;
  other.job_id = "b-2";
  MetricFamilies families;
  AddShardMetrics({shard, other}, {1, 1}, families);
  const std::string text = families.Text();
  for (const char* sample :
       {"hooke_shard_answer_seconds_count{job=\"a-1\"} 6", "hooke_shard_answer_seconds_sum{job=\"a-1\"} 12",
        "hooke_shard_answer_seconds_bucket{job=\"a-1\",le=\"0.001\"} 5",
        "hooke_shard_answer_seconds_bucket{job=\"a-1\",le=\"+Inf\"} 6",
        "hooke_shard_staleness_updates_bucket{job=\"a-1\",le=\"0\"} 4",
        "hooke_shard_staleness_updates_sum{job=\"a-1\"} 1", "hooke_shard_snapshot_age_seconds{job=\"a-1\"} 7",
        "hooke_shard_group_idle_seconds{job=\"a-1\",group=\"0\"} 1", "hooke_server_shards_left_out 1"}) {
    EXPECT_THAT(text, HasSubstr(std::string(sample) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("group=\"2\"")));
  EXPECT_THAT(text, Not(HasSubstr("snapshot_duration")));
  EXPECT_THAT(text, Not(HasSubstr("b-2")));
}

// A server that is not the coordinator has no metrics of the cluster.
TEST(ServerMetricsTest, ShowsTheDaemon) {
  DaemonFigures figures;
  figures.version = "1.2.3";
  figures.process.cpu_time = absl::Milliseconds(1500);
  figures.space = SpaceFigures{100, 400, absl::UnixEpoch()};
  figures.now = absl::UnixEpoch() + absl::Seconds(2);
  figures.stats.disk_centers = 3;
  MetricFamilies families;
  AddServerMetrics(figures, families);
  const std::string text = families.Text();
  for (const char* sample : {"hooke_build_info{program=\"hooke-server\",version=\"1.2.3\"} 1",
                             "process_cpu_seconds_total 1.5", "hooke_state_folder_free_bytes 100",
                             "hooke_state_folder_answer_age_seconds 2", "hooke_server_centers{where=\"disk\"} 3"}) {
    EXPECT_THAT(text, HasSubstr(std::string(sample) + "\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("hooke_jobs")));
  figures.coordinator.emplace();
  MetricFamilies more;
  AddServerMetrics(figures, more);
  EXPECT_THAT(more.Text(), HasSubstr("hooke_coordinator_store_failures_total 0\n"));
}

}  // namespace
}  // namespace hooke
