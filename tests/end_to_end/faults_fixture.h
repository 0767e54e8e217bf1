#ifndef HOOKE_TESTS_END_TO_END_FAULTS_FIXTURE_H_
#define HOOKE_TESTS_END_TO_END_FAULTS_FIXTURE_H_

// What tests of faults share: a cluster with a job of two groups, whose processes a test kills or stops.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"
#include "tests/end_to_end/job_text.h"

namespace hooke {

// How long a test waits for what a job must do at some time. It is generous, because other tests and compilers may have
// the cores.
inline constexpr absl::Duration kFaultLimit = absl::Seconds(300);

// Returns the number that follows the first `text` of the log; nullopt: there is none.
inline std::optional<std::string> NumberAfter(const std::string& log, const std::string& text) {
  const size_t at = log.find(text);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + text.size();
  return log.substr(begin, log.find_first_not_of("0123456789", begin) - begin);
}

class FaultsFixture : public ::testing::Test {
 protected:
  // Starts a cluster and a job of two groups, and waits until each group has made `steps` steps.
  void StartJob(const ClusterOptions& options, int epochs, uint64_t steps = 20) {
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", 4000, 1).ok());
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 500, 2).ok());
    JobText job;
    job.data = cluster_->folder();
    job.epochs = epochs;
    if (!averaging_.empty()) job.averaging = averaging_;
    const auto id = cluster_->Submit(ToYaml(job));
    ASSERT_TRUE(id.ok()) << id.status();
    id_ = *id;
    AwaitSteps(steps);
  }

  void AwaitSteps(uint64_t steps) {
    const auto status = cluster_->Await(id_, kFaultLimit, [&](const v1::JobStatus& job) {
      return job.groups_size() == 2 &&
             std::all_of(job.groups().begin(), job.groups().end(), [&](const v1::GroupStatus& group) {
               return group.state() == v1::GROUP_STATE_RUNNING && group.progress().step() >= steps;
             });
    });
    ASSERT_TRUE(status.ok()) << status.status();
    ASSERT_EQ(status->state(), v1::JOB_STATE_RUNNING) << status->reason() << cluster_->Log(id_);
  }

  void ExpectSuccess() {
    const auto end = cluster_->AwaitEnd(id_, kFaultLimit);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->state(), v1::JOB_STATE_SUCCEEDED) << end->reason() << "\n" << cluster_->Log(id_);
    EXPECT_GT(end->center().accuracy(), 0.9);
  }

  std::unique_ptr<Cluster> cluster_;
  std::string id_;
  std::string averaging_;  // The job's `averaging` section. Empty: elastic.
};

}  // namespace hooke

#endif  // HOOKE_TESTS_END_TO_END_FAULTS_FIXTURE_H_
