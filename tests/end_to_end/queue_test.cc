// The queue with real processes: a group that makes room for a job of higher priority, and one that is held.

#include <fstream>
#include <regex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(300);

// Returns the number in the first match of `pattern`; 0 if there is none.
uint64_t NumberIn(const std::string& text, const std::string& pattern) {
  std::smatch match;
  uint64_t number = 0;
  if (!std::regex_search(text, match, std::regex(pattern))) return 0;
  return absl::SimpleAtoi(match[1].str(), &number) ? number : 0;
}

class QueueTest : public ::testing::Test {
 protected:
  void StartCluster(const std::vector<std::string>& worker_flags = {}) {
    ClusterOptions options;
    options.servers = 1;
    options.workers = 1;
    options.worker_flags = worker_flags;
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }
  std::string Submit(const std::string& yaml) {
    const auto id = cluster_->Submit(yaml);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }
  void Await(const std::string& id, const JobCondition& condition) {
    const auto status = cluster_->Await(id, kLimit, condition);
    ASSERT_TRUE(status.ok()) << status.status();
    ASSERT_TRUE(condition(*status)) << status->reason() << "\n" << cluster_->Log(id);
  }

  std::unique_ptr<Cluster> cluster_;
};

// The running group leaves after a step and an exchange. Its job waits with the reason, and goes on from that very step
// with its own state when the other job has succeeded.
TEST_F(QueueTest, AGroupMakesRoomAndLosesNoStep) {
  StartCluster();
  ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", 4000, 1).ok());
  ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 500, 2).ok());
  JobText job;
  job.data = cluster_->folder();
  job.groups = 1;
  job.epochs = kLongEpochs;
  const std::string low = Submit(ToYaml(job));
  Await(low, [](const v1::JobStatus& status) {
    return status.groups_size() == 1 && status.groups(0).progress().step() >= 50;
  });
  job.epochs = 1;
  const std::string high = Submit(absl::StrCat(ToYaml(job), "priority: 50\n"));
  Await(low, [](const v1::JobStatus& status) { return status.state() == v1::JOB_STATE_QUEUED; });
  EXPECT_THAT(cluster_->Hooke({"jobs"}).output, HasSubstr(absl::StrCat("made room for ", high, " of priority 50")));
  const auto end = cluster_->AwaitEnd(high, kLimit);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason();
  Await(low, [](const v1::JobStatus& status) {
    return status.state() == v1::JOB_STATE_RUNNING && status.groups(0).incarnation() == 2 &&
           status.groups(0).state() == v1::GROUP_STATE_RUNNING;
  });
  const std::string log = cluster_->Log(low);
  const uint64_t left = NumberIn(log, "left after step ([0-9]+), as asked");
  EXPECT_GE(left, 50u) << log;
  EXPECT_EQ(NumberIn(log, "goes on from step ([0-9]+) with its own state"), left) << log;
  EXPECT_GT(cluster_->Status(low)->groups(0).progress().step(), left);
  EXPECT_EQ(cluster_->Hooke({"cancel", low}).status, 0);
}

// A command that ends in the same way each time is held after three starts. Its last lines say why. When the cause is
// mended, it goes on and succeeds.
TEST_F(QueueTest, AGroupThatAlwaysDiesIsHeld) {
  StartCluster({"--allow-commands"});
  const std::string wanted = cluster_->folder() + "/wanted";
  const std::string id = Submit(absl::StrCat("name: crash\ncommand: [sh, -c, 'test -e ", wanted,
                                             " || { echo nothing wanted is there; kill -9 $$; }']\n"));
  Await(id, [](const v1::JobStatus& status) { return status.state() == v1::JOB_STATE_HELD; });
  EXPECT_EQ(cluster_->Status(id)->groups(0).incarnation(), 3u);
  EXPECT_THAT(cluster_->Hooke({"jobs"}).output,
              HasSubstr("group 0 is held: it ended 3 times in a row in the same way"));
  const std::string shown = cluster_->Hooke({"jobs", id}).output;
  EXPECT_THAT(shown, HasSubstr("Its last lines:\n")) << cluster_->Log(id);
  EXPECT_THAT(shown, HasSubstr("nothing wanted is there"));
  EXPECT_EQ(cluster_->Hooke({"watch", id}).status, 1);
  std::ofstream(wanted) << "yes";
  EXPECT_THAT(cluster_->Hooke({"resume", id}).output, HasSubstr(absl::StrCat(id, ": 1 group starts again; ")));
  const auto end = cluster_->AwaitEnd(id, kLimit);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason();
  EXPECT_EQ(cluster_->Hooke({"resume", id}).status, 1);
}

}  // namespace
}  // namespace hooke
