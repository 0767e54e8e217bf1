// The number of groups changes while real ranks train, at the word of `hooke scale`.

#include <signal.h>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/faults_fixture.h"

namespace hooke {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// With so many samples, and bars as faint as this, groups come to an accuracy of some 95 % in so many epochs.
constexpr int kManySamples = 40000;
constexpr int kManyEpochs = 6;
constexpr int kFaint = 9;
constexpr double kFaintRate = 0.001;

class ScaleTest : public FaultsFixture {
 protected:
  // Starts a cluster of two workers with four slots each, and writes data with bars of this brightness.
  void Begin(int samples = 4000, int brightness = 120) {
    ClusterOptions options;
    options.slots = 4;
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", samples, 1, brightness).ok());
    ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 10000, 2, brightness).ok());
  }

  // Submits a job of `groups` groups. `kinds`, if given, stands for them.
  void Submit(int groups, int epochs, const std::string& averaging, const std::string& kinds = "") {
    JobText job;
    job.epochs = epochs;
    job.groups = groups;
    job.kinds = kinds;
    job.averaging = averaging;
    Submit(job);
  }

  // Submits a job for the data of the cluster, which it starts if there is none.
  void Submit(JobText job) {
    if (cluster_ == nullptr) {
      ASSERT_NO_FATAL_FAILURE(Begin());
    }
    job.data = cluster_->folder();
    const auto id = cluster_->Submit(ToYaml(job));
    ASSERT_TRUE(id.ok()) << id.status();
    id_ = *id;
  }

  // Waits until the job has `groups` groups, all of which have made `more` steps in this generation.
  void AwaitGroups(int groups, uint64_t more) {
    uint64_t first = 0;
    const auto status = cluster_->Await(id_, kFaultLimit, [&](const v1::JobStatus& job) {
      if (job.groups_size() != groups) return false;
      for (const v1::GroupStatus& group : job.groups()) {
        if (group.state() != v1::GROUP_STATE_RUNNING) return false;
        if (first == 0) first = group.progress().step();
        if (group.progress().step() < first + more) return false;
      }
      return true;
    });
    ASSERT_TRUE(status.ok()) << status.status() << cluster_->Log(id_);
    ASSERT_EQ(status->groups_size(), groups) << status->reason() << cluster_->Log(id_);
  }

  void Scale(int groups, const std::string& site = "") {
    std::vector<std::string> command = {"scale", id_, absl::StrCat("--groups=", groups)};
    if (!site.empty()) command.push_back(absl::StrCat("--site=", site));
    const ProgramResult said = cluster_->Hooke(command);
    EXPECT_EQ(said.status, 0) << said.output;
  }

  // Returns the site of each group that runs and the number of its processes, as "site0 2".
  std::vector<std::string> Places() {
    std::vector<std::string> places;
    const auto job = cluster_->Status(id_);
    for (const v1::GroupStatus& group : job->groups()) {
      places.push_back(absl::StrCat(group.site(), " ", cluster_->RankPids(id_, group.group()).size()));
    }
    return places;
  }

  double AccuracyAtTheEnd() {
    ExpectSuccess();
    return cluster_->Status(id_)->center().accuracy();
  }
};

// 1 -> 3 -> 2 groups. Each change ends all groups without a lost step, and those that were there go on with their own
// state.
TEST_F(ScaleTest, GroupsComeAndGo) {
  ASSERT_NO_FATAL_FAILURE(Submit(1, 40, "{rule: elastic, interval: 8}"));
  AwaitGroups(1, 100);
  Scale(3);
  AwaitGroups(3, 100);
  Scale(2);
  ExpectSuccess();
  const std::string log = cluster_->Log(id_);
  const std::optional<std::string> left = NumberAfter(log, ": left after step ");
  ASSERT_TRUE(left.has_value()) << log;
  EXPECT_THAT(log, HasSubstr(absl::StrCat("generation 2: 3 groups x 2 ranks divide what is left, from step ", *left)));
  EXPECT_THAT(log, HasSubstr(absl::StrCat("group 0 was started again and goes on from step ", *left,
                                          " with its own state of step ", *left)));
  EXPECT_THAT(log, ContainsRegex("generation 3: 2 groups x 2 ranks divide what is left, from step [0-9]+"));
  const auto end = cluster_->Status(id_);
  EXPECT_EQ(end->generation(), 3u);
  EXPECT_NEAR(end->center().epoch(), 40, 1e-9);
}

// 1 -> 3 -> 2 groups, the first two for a quarter of the data each: the center is as good as that of 2 groups
// throughout. The bars are hard to see, so that the accuracy says how well the groups have learned. It is the mean of
// two jobs, because one differs from the next by a third of a point. The single group at the beginning makes more steps
// with as much data, which does the center good.
TEST_F(ScaleTest, IsAsGoodAsTwoGroupsThroughout) {
  constexpr int kSeeds = 2;
  // Steps of one group of two ranks with batches of 16.
  constexpr int kManySteps = kManySamples * kManyEpochs / 32;
  ASSERT_NO_FATAL_FAILURE(Begin(kManySamples, kFaint));
  double changed = 0;
  double steady = 0;
  JobText job;
  job.epochs = kManyEpochs;
  job.learning_rate = kFaintRate;
  for (job.seed = 1; job.seed <= kSeeds; ++job.seed) {
    job.groups = 1;
    ASSERT_NO_FATAL_FAILURE(Submit(job));
    AwaitGroups(1, kManySteps / 4);
    Scale(3);
    AwaitGroups(3, kManySteps / 12);
    Scale(2);
    changed += AccuracyAtTheEnd() / kSeeds;
    EXPECT_EQ(cluster_->Status(id_)->generation(), 3u) << cluster_->Log(id_);
    job.groups = 2;
    ASSERT_NO_FATAL_FAILURE(Submit(job));
    steady += AccuracyAtTheEnd() / kSeeds;
    std::cout << "seed " << job.seed << ": mean accuracy so far " << changed * kSeeds / job.seed << " with changes, "
              << steady * kSeeds / job.seed << " without" << std::endl;
  }
  EXPECT_GT(steady, 0.80);
  EXPECT_LT(steady, 0.97) << "too easy to tell good groups from bad ones";
  EXPECT_GT(changed, steady - 0.003);
}

// Under a rule with rounds no group of the new generation waits for one that is gone.
TEST_F(ScaleTest, RoundsGoOnWithTheGroupsThatAreThere) {
  for (const char* averaging : {"{rule: average, interval: 8}", "{rule: bmuf, interval: 8}", "{rule: sync}"}) {
    ASSERT_NO_FATAL_FAILURE(Submit(2, 40, averaging));
    AwaitGroups(2, 20);
    Scale(1);
    AwaitGroups(1, 20);
    Scale(3);
    ExpectSuccess();
    EXPECT_EQ(cluster_->Status(id_)->generation(), 3u) << averaging << cluster_->Log(id_);
  }
}

// The groups of one site come and go by `--site`. Those of the other site keep their number, their ranks and their
// site.
TEST_F(ScaleTest, GroupsOfOneSiteComeAndGo) {
  const std::string kinds = "[{site: site0, ranks: 2}, {site: site1, count: 2, batch_size: 8}]";
  ASSERT_NO_FATAL_FAILURE(Submit(0, 60, "{rule: elastic, interval: 8}", kinds));
  AwaitGroups(3, 50);
  EXPECT_THAT(Places(), ElementsAre("site0 2", "site1 1", "site1 1"));
  const ProgramResult which = cluster_->Hooke({"scale", id_, "--groups=2"});
  EXPECT_NE(which.status, 0);
  EXPECT_THAT(which.output, HasSubstr("site"));
  const ProgramResult nowhere = cluster_->Hooke({"scale", id_, "--groups=2", "--site=nowhere"});
  EXPECT_NE(nowhere.status, 0);
  EXPECT_THAT(nowhere.output, HasSubstr("nowhere"));
  Scale(2, "site0");
  AwaitGroups(4, 50);
  EXPECT_THAT(Places(), ElementsAre("site0 2", "site0 2", "site1 1", "site1 1"));
  Scale(1, "site1");
  AwaitGroups(3, 50);
  EXPECT_THAT(Places(), ElementsAre("site0 2", "site0 2", "site1 1"));
  ExpectSuccess();
  const auto end = cluster_->Status(id_);
  EXPECT_EQ(end->generation(), 3u) << cluster_->Log(id_);
  EXPECT_NEAR(end->center().epoch(), 60, 1e-9);
}

// A worker joins, and the job grows. The worker is killed, and the job shrinks. No user says a word.
TEST_F(ScaleTest, FollowsTheRoom) {
  ClusterOptions options;
  options.workers = 1;
  options.server_flags = {"--resize-after=2s", "--lease=5s"};
  auto cluster = Cluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  cluster_ = *std::move(cluster);
  ASSERT_TRUE(WriteBars(cluster_->folder() + "/train", 4000, 1).ok());
  ASSERT_TRUE(WriteBars(cluster_->folder() + "/test", 500, 2).ok());
  JobText job;
  job.data = cluster_->folder();
  job.epochs = 300;
  job.kinds = "{count: 1, ranks: 2, min: 1, max: 3}";
  const auto id = cluster_->Submit(ToYaml(job));
  ASSERT_TRUE(id.ok()) << id.status();
  id_ = *id;
  AwaitGroups(1, 50);
  ASSERT_TRUE(cluster_->AddWorker(4).ok());
  AwaitGroups(3, 50);
  cluster_->SignalWorker(1, SIGKILL);
  AwaitGroups(1, 50);
  const ProgramResult refused = cluster_->Hooke({"scale", id_, "--groups=4"});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, HasSubstr("4 groups; the job file allows 1 to 3"));
  ExpectSuccess();
  const std::string log = cluster_->Log(id_);
  EXPECT_THAT(log, HasSubstr("grows from 1 to 3 groups: the cluster has room"));
  EXPECT_THAT(log, HasSubstr("shrinks from 3 to 1 group: the cluster has had no room for 2 of them for"));
  const auto end = cluster_->Status(id_);
  EXPECT_EQ(end->generation(), 3u) << log;
  EXPECT_NEAR(end->center().epoch(), 300, 1e-9);
}

// A group that is killed, so that it cannot leave, and a server that dies meanwhile and comes back do not hold up the
// change.
TEST_F(ScaleTest, FaultsDuringTheChange) {
  ASSERT_NO_FATAL_FAILURE(Submit(2, 60, "{rule: elastic, interval: 8}"));
  AwaitGroups(2, 50);
  const auto ranks = cluster_->RankPids(id_, 1);
  ASSERT_THAT(ranks, SizeIs(2));
  kill(ranks[0], SIGKILL);
  Scale(3);
  cluster_->SignalServer(1, SIGKILL);
  ASSERT_TRUE(cluster_->RestartServer(1).ok());
  ExpectSuccess();
  EXPECT_EQ(cluster_->Status(id_)->generation(), 2u) << cluster_->Log(id_);
}

// Without one of its servers no group could train, and what that server has of the groups' work decides which data are
// left. So the job waits, and says for what.
TEST_F(ScaleTest, WaitsForAServerThatIsAway) {
  ASSERT_NO_FATAL_FAILURE(Submit(2, 60, "{rule: elastic, interval: 8}"));
  AwaitGroups(2, 50);
  cluster_->SignalServer(1, SIGKILL);
  for (uint32_t group : {0, 1}) {
    for (const pid_t rank : cluster_->RankPids(id_, group)) kill(rank, SIGKILL);
  }
  Scale(3);
  const auto waits = cluster_->Await(id_, kFaultLimit, [](const v1::JobStatus& job) {
    return job.reason().find("the next generation waits until server") != std::string::npos &&
           job.reason().find("it has not answered since") != std::string::npos;
  });
  ASSERT_TRUE(waits.ok()) << waits.status() << cluster_->Log(id_);
  EXPECT_EQ(waits->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(waits->generation(), 1u);
  ASSERT_TRUE(cluster_->RestartServer(1).ok());
  ExpectSuccess();
  EXPECT_EQ(cluster_->Status(id_)->generation(), 2u) << cluster_->Log(id_);
}

}  // namespace
}  // namespace hooke
