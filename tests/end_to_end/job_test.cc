// Whole jobs on a real cluster: daemon processes, real mpirun, gRPC and SQLite.

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kJobLimit = absl::Seconds(120);

// Returns the bytes of a safetensors file that follow its header. The header's length is in the first 8 bytes.
std::string TensorsOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  uint64_t header = 0;
  for (size_t i = 8; i-- > 0 && bytes.size() > 8;) header = header << 8 | static_cast<unsigned char>(bytes[i]);
  return bytes.size() < 8 + header ? "" : bytes.substr(8 + header);
}

// Returns the cells of each series' last row in the output of `hooke metrics --csv`, by group; "" is the center.
std::map<std::string, std::vector<std::string>> LastRows(const ProgramResult& csv) {
  EXPECT_EQ(csv.status, 0) << csv.output;
  std::map<std::string, std::vector<std::string>> last;
  for (absl::string_view line : absl::StrSplit(csv.output, '\n', absl::SkipEmpty())) {
    std::vector<std::string> cells = absl::StrSplit(absl::StripSuffix(line, "\r"), ',');
    EXPECT_EQ(cells.size(), 15u) << line;
    if (cells.size() == 15 && cells[0] != "job") last[cells[2]] = std::move(cells);
  }
  return last;
}

class JobTest : public ::testing::Test {
 protected:
  void StartCluster(const ClusterOptions& options) {
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", 2000, 1).ok());
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 500, 2).ok());
  }

  JobText Job() const {
    JobText job;
    job.model = "mlp";
    job.learning_rate = 0.05;
    job.data = cluster_->folder();
    return job;
  }

  // Submits the job, waits for success and returns the last status.
  v1::JobStatus Succeed(const JobText& job) {
    auto id = cluster_->Submit(ToYaml(job));
    EXPECT_TRUE(id.ok()) << id.status();
    if (!id.ok()) return {};
    auto end = cluster_->AwaitEnd(*id, kJobLimit);
    EXPECT_TRUE(end.ok()) << end.status();
    if (!end.ok()) return {};
    EXPECT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason() << "\n" << cluster_->Log(*id);
    return *end;
  }

  std::unique_ptr<Cluster> cluster_;
};

// Two groups of two ranks train one model. The center is evaluated and exported, and the job has a history. An export
// does not replace an existing file.
TEST_F(JobTest, TwoGroupsTrainOneModel) {
  StartCluster({});
  const v1::JobStatus job = Succeed(Job());
  EXPECT_GT(job.center().accuracy(), 0.95);
  EXPECT_EQ(job.center().samples(), 500u);
  EXPECT_EQ(job.servers_size(), 2);
  EXPECT_THAT(cluster_->LeftOver(), IsEmpty());

  // The history ends with what the job reported last: each group's loss, and the center's accuracy.
  std::map<std::string, std::vector<std::string>> last = LastRows(cluster_->Hooke({"metrics", job.job_id(), "--csv"}));
  ASSERT_EQ(last.size(), 3u);
  for (const char* group : {"0", "1"}) {
    const v1::RankProgress& progress = job.groups(std::stoi(group)).progress();
    EXPECT_EQ(last[group][4], absl::StrCat(progress.step()));
    EXPECT_EQ(std::stod(last[group][6]), progress.loss());
  }
  EXPECT_EQ(std::stod(last[""][6]), job.center().loss());
  EXPECT_EQ(std::stod(last[""][9]), job.center().accuracy());

  const std::string model = cluster_->folder() + "/model.safetensors";
  const ProgramResult exported = cluster_->Hooke({"export", job.job_id(), model});
  EXPECT_EQ(exported.status, 0) << exported.output;
  // The mlp 784-512-512-10 has 669,706 float32 values.
  EXPECT_GT(std::filesystem::file_size(model), 669706u * 4);
  EXPECT_LT(std::filesystem::file_size(model), 669706u * 4 + 4096);

  const ProgramResult again = cluster_->Hooke({"export", job.job_id(), model});
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.output,
              HasSubstr(model + ": the file exists already; choose another name, or --force to replace it"));
}

// The same job runs as one group of four ranks on one worker, and as two groups that never exchange. `plot` compares
// the two.
TEST_F(JobTest, OtherShapesOfTheSameJob) {
  ClusterOptions options;
  options.workers = 1;
  options.slots = 4;
  StartCluster(options);
  JobText one_group = Job();
  one_group.groups = 1;
  one_group.ranks = 4;
  const v1::JobStatus first = Succeed(one_group);
  EXPECT_GT(first.center().accuracy(), 0.9);

  JobText alone = Job();
  alone.averaging = "{rule: none}";
  const v1::JobStatus second = Succeed(alone);
  EXPECT_GT(second.center().accuracy(), 0.9);

  // Both in one picture, which is well-formed XML.
  const std::string svg = cluster_->folder() + "/two.svg";
  const ProgramResult plot = cluster_->Hooke({"plot", first.job_id(), second.job_id(), "--svg", svg});
  EXPECT_EQ(plot.status, 0) << plot.output;
  const std::string parse = "import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])";
  EXPECT_EQ(std::system(absl::StrCat("python3 -c '", parse, "' '", svg, "'").c_str()), 0);
}

// Under sync, two groups of one rank make bitwise the same model as one group of two ranks. The job sets no quorum, and
// the groups are never ready at the same moment.
TEST_F(JobTest, TwoGroupsBySyncMakeTheModelOfOneLargeGroup) {
  ClusterOptions options;
  options.workers = 1;
  options.slots = 2;
  StartCluster(options);
  std::vector<std::string> models;
  for (const int groups : {1, 2}) {
    JobText job = Job();
    job.epochs = 1;
    job.groups = groups;
    job.ranks = 2 / groups;
    job.averaging = "{rule: sync, grace_seconds: 10}";
    const std::string model = absl::StrCat(cluster_->folder(), "/", groups, ".safetensors");
    const ProgramResult exported = cluster_->Hooke({"export", Succeed(job).job_id(), model});
    ASSERT_EQ(exported.status, 0) << exported.output;
    models.push_back(TensorsOf(model));
  }
  EXPECT_EQ(models[0].size(), 669706u * 4);
  EXPECT_TRUE(models[0] == models[1]) << "the models differ";
}

// Jobs by sync, async and diloco reach the accuracy asked for. Diloco also runs with fragments, delay and compression,
// and sync with top_k.
TEST_F(JobTest, RulesThatStepTheCenter) {
  ClusterOptions options;
  options.workers = 1;
  options.slots = 4;
  StartCluster(options);
  for (const char* averaging : {"{rule: sync, grace_seconds: 10}", "{rule: async, interval: 2, staleness_power: 0.5}",
                                "{rule: diloco, interval: 8, momentum: 0.5}",
                                "{rule: diloco, interval: 8, delay: 1, fragments: 4, momentum: 0.5, compression: int8}",
                                "{rule: sync, compression: top_k, top_k: 0.05}"}) {
    JobText job = Job();
    job.averaging = averaging;
    EXPECT_GT(Succeed(job).center().accuracy(), 0.9) << averaging;
  }
}

// Groups of two sites, with different numbers of ranks and different batches, train one model. Each group runs at its
// site, and all make equally many steps.
TEST_F(JobTest, GroupsThatAreNotAlike) {
  StartCluster({});
  for (const char* averaging :
       {"{rule: elastic, interval: 8}", "{rule: sync, grace_seconds: 10}", "{rule: async, interval: 2}",
        "{rule: diloco, interval: 8, delay: 1, fragments: 4, momentum: 0.5, compression: int8}"}) {
    SCOPED_TRACE(averaging);
    JobText job = Job();
    job.kinds = "[{site: site0, ranks: 2}, {site: site1, count: 2, batch_size: 8}]";
    job.averaging = averaging;
    const v1::JobStatus end = Succeed(job);
    EXPECT_GT(end.center().accuracy(), 0.9);
    ASSERT_EQ(end.groups_size(), 3);
    for (const v1::GroupStatus& group : end.groups()) {
      EXPECT_EQ(group.site(), group.group() == 0 ? "site0" : "site1");
      EXPECT_EQ(group.progress().step(), 123u) << "3 epochs of 2000 / (2 x 16 + 8 + 8) steps";
    }
  }
  EXPECT_THAT(
      cluster_->Hooke({"jobs"}).output,
      HasSubstr("mlp, 1 group x 2 ranks at site0, 2 groups x 1 rank at site1 (batch 8), elastic every 8 steps"));
}

// A group that is killed comes back with its own number of ranks, at its own site, while the other goes on.
TEST_F(JobTest, AKilledGroupComesBackAsItWas) {
  StartCluster({});
  JobText job = Job();
  job.kinds = "[{site: site0, ranks: 1}, {site: site1, ranks: 2}]";
  job.epochs = kLongEpochs;
  const auto id = cluster_->Submit(ToYaml(job));
  ASSERT_TRUE(id.ok()) << id.status();
  const auto trains = [](uint32_t incarnation) {
    return [incarnation](const v1::JobStatus& status) {
      const v1::GroupStatus& group = status.groups(1);
      return group.incarnation() == incarnation && group.progress().step() > 0 &&
             status.groups(0).progress().step() > 0;
    };
  };
  ASSERT_TRUE(cluster_->Await(*id, kJobLimit, trains(1)).ok());
  const std::vector<pid_t> ranks = cluster_->RankPids(*id, 1);
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks.front(), SIGKILL);
  const auto back = cluster_->Await(*id, kJobLimit, trains(2));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->groups(1).site(), "site1");
  EXPECT_EQ(back->groups(0).incarnation(), 1u);
  EXPECT_EQ(cluster_->RankPids(*id, 1).size(), 2u);
  EXPECT_EQ(cluster_->Hooke({"cancel", *id}).status, 0);
}

// `submit --watch` shows progress and exits with the job's result. `jobs`, `nodes` and `logs` name the job, its worker
// and its group. The exit code is 1 for an unknown job, and 2 for an unknown flag.
TEST_F(JobTest, SubmitWatchLogsJobsNodesAndExitCodes) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 1;
  StartCluster(options);
  const std::string path = cluster_->folder() + "/watched.yaml";
  JobText job = Job();
  job.groups = 1;
  std::ofstream(path) << ToYaml(job);
  const ProgramResult watched = cluster_->Hooke({"submit", path, "--watch"}, kJobLimit);
  EXPECT_EQ(watched.status, 0) << watched.output;
  EXPECT_THAT(watched.output, HasSubstr("center test accuracy: "));
  EXPECT_THAT(cluster_->Hooke({"jobs"}).output, HasSubstr("bars-1"));
  EXPECT_THAT(cluster_->Hooke({"nodes"}).output, HasSubstr("w0"));
  EXPECT_THAT(cluster_->Hooke({"logs", "bars-1"}).output, HasSubstr("group 0"));
  EXPECT_EQ(cluster_->Hooke({"watch", "no-such-job"}).status, 1);
  EXPECT_EQ(cluster_->Hooke({"jobs", "--no-such-flag"}).status, 2);
}

// Cancelling a job ends its ranks and frees the worker's slots for the next job.
TEST_F(JobTest, CancelLeavesNothingRunning) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 1;
  StartCluster(options);
  JobText job = Job();
  job.groups = 1;
  job.epochs = kLongEpochs;
  const auto id = cluster_->Submit(ToYaml(job));
  ASSERT_TRUE(id.ok()) << id.status();
  const auto running =
      cluster_->Await(*id, kJobLimit, [](const v1::JobStatus& status) { return status.first_step_unix_ms() > 0; });
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_EQ(cluster_->RankPids(*id, 0).size(), 2u);
  EXPECT_EQ(cluster_->Hooke({"cancel", *id}).status, 0);
  const auto ended = cluster_->AwaitEnd(*id, kJobLimit);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->state(), v1::JOB_STATE_CANCELLED);
  // The next job needs all slots, so it can run only if the cancelled ranks are gone.
  job.epochs = 1;
  Succeed(job);
  EXPECT_THAT(cluster_->LeftOver(), IsEmpty());
}

}  // namespace
}  // namespace hooke
